// Runs once, when the page is loaded.
() => {
  try {
    localStorage.removeItem("docgemma-conversation"); // earlier versions brought everybody's last conversation back
  } catch {} // a frame without storage
  const list = document.querySelector("#dg-list .toggle-button");
  list?.setAttribute("aria-label", "Conversations");
  list?.setAttribute("title", "Conversations");
  // Gradio calls the examples a list; its children are buttons
  const grouped = () => document.querySelector("#dg-chat .examples")?.setAttribute("role", "group");
  new MutationObserver(grouped).observe(document.body, { childList: true, subtree: true });
  grouped();
  // arrows walk through the patients that were found
  document.querySelector("#dg-find").addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const stops = [...document.querySelectorAll("#dg-search input, #dg-search textarea, #dg-found button")];
    stops[stops.indexOf(document.activeElement) + step]?.focus();
    event.preventDefault();
  });
  const dark = document.body.classList.contains("dark"); // paper is white
  addEventListener("beforeprint", () => document.body.classList.remove("dark"));
  addEventListener("afterprint", () => document.body.classList.toggle("dark", dark));
  // An answer is HTML: what Gradio's copy button copies is its text.
  const clipboard = navigator.clipboard;
  if (!clipboard) return;
  const write = clipboard.writeText.bind(clipboard);
  clipboard.writeText = (text) => write(text.startsWith("<div class=\"dg-") ? plain(text) : text);
  function plain(html) {
    const page = new DOMParser().parseFromString(html, "text/html"); // nothing in it runs or is fetched
    for (const item of page.querySelectorAll("li")) item.prepend("- ");
    for (const part of page.querySelectorAll("li, p, div, h2, h3, h4, tr, dd, ul, ol, table")) part.before("\n");
    for (const part of page.querySelectorAll("br, p, div, h2, h3, h4, ul, ol, table")) part.after("\n");
    const lines = page.body.textContent.split("\n").map((line) => line.replace(/\s+/g, " ").trim());
    return lines.join("\n").replace(/\n{3,}/g, "\n\n").trim();
  }
}
