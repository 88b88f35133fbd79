// Every visible text whose contrast with what is drawn behind it is below WCAG AA: [text, ratio, colours].
() => {
  const parse = (c) => { const v = c.match(/[\d.]+/g).map(Number); return c.startsWith("color(srgb") ? [v[0]*255, v[1]*255, v[2]*255, v[3] ?? 1] : [v[0], v[1], v[2], v[3] ?? 1]; };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (c) => { const f = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
  const behind = (el) => { const stack = []; for (let e = el; e; e = e.parentElement) stack.push(parse(getComputedStyle(e).backgroundColor)); return stack.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]); };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const el = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(el.tagName) || !el.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    const style = getComputedStyle(el), box = el.getBoundingClientRect();
    if (box.width < 2 || box.height < 2 || el.closest("[disabled], [aria-disabled=true]")) continue;
    const back = behind(el), fore = over(parse(style.color), back);
    let seen = 1; for (let e = el; e; e = e.parentElement) seen *= parseFloat(getComputedStyle(e).opacity);
    const [a, b] = [light(over([fore[0], fore[1], fore[2], seen], back)), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) bad.push([text.slice(0, 40), ratio.toFixed(2), style.color, back.slice(0, 3).map(Math.round).join(",")]);
  }
  return bad;
}
