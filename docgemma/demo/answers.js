// How answers are read: from their beginning, and by numbers that open the chart or the source. And where the focus goes.
() => {
  const one = selector => document.querySelector(selector);
  const soon = act => setTimeout(act, 150); // after Gradio has drawn what changed
  const typing = place => document.activeElement?.closest(place); // who types stays: else the rest goes elsewhere
  window.dgBack = () => soon(() => one('#dg-composer textarea')?.focus());
  window.dgField = () => soon(() => typing('#dg-fields') || one('#dg-field-0 textarea')?.focus());
  // to what the card waits for, else to the card; to the composer if what had the focus (a choice, a decision) has gone
  window.dgFocus = () => soon(() => {
    if (typing('#dg-fields, #dg-reason')) return;
    const missing = one('#dg-needed') && one('#dg-reason textarea');
    const fields = [...document.querySelectorAll('#dg-fields textarea')].filter(field => field.offsetParent);
    const card = missing || fields.find(field => !field.value) || one('#dg-card-title');
    if (card) card.focus();
    else if (document.activeElement === document.body) one('#dg-composer textarea')?.focus();
  });

  // after Gradio has scrolled to the end of the answer
  window.dgRead = () => setTimeout(() => {
    const asked = [...document.querySelectorAll('#dg-chat .dg-said')].at(-1);
    const talk = asked?.closest('.panel-wrap, .bubble-wrap');
    const banner = document.querySelector('#dg-banner')?.getBoundingClientRect().bottom ?? 0;
    if (talk) talk.scrollTop += asked.getBoundingClientRect().top - talk.getBoundingClientRect().top - 16;
    const card = document.querySelector('#dg-card .dg-card'); // on a phone the page scrolls, and a card is looked at first
    if (talk && !card && innerWidth <= 700) scrollBy(0, asked.getBoundingClientRect().top - banner - 12);
    const page = document.documentElement.dataset;
    page.dgSettled = Number(page.dgSettled ?? 0) + 1; // turns after which nothing moves any more
  }, 500);

  document.addEventListener('click', event => {
    const cite = event.target.closest?.('a.dg-cite');
    if (!cite) return;
    event.preventDefault();
    const source = cite.closest('.dg-answer').querySelectorAll('.dg-sources > ol > li')[cite.textContent - 1];
    const place = document.getElementById(cite.hash.slice(1)) ?? source; // another patient's chart is shown
    if (!place) return;
    if (!place.offsetParent) document.querySelector('#dg-tabs button[role=tab]')?.click(); // the patient's tab
    setTimeout(() => {
      place.closest('details')?.setAttribute('open', '');
      place.querySelector('details')?.setAttribute('open', '');
      place.tabIndex = -1;
      place.scrollIntoView({block: 'center'});
      place.focus({preventScroll: true});
    }, 100);
  });
}
