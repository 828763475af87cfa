import { createHash } from 'node:crypto';

/**
 * The look of the pages for people, in light and dark. Every text has a contrast of at least 4.5 to 1 to its ground, and
 * every edge of a field 3 to 1. The Content-Security-Policy allows this one block by its hash, so no page sets a style of
 * its own, and no element has a style attribute.
 */
const colours = `:root{color-scheme:light dark;--ink:#1b1c26;--soft:#55576a;--paper:#f3f4f8;--card:#fff;--line:#d9dbe6;--edge:#75778a;
--accent:#2b4acb;--on-accent:#fff;--good:#17633a;--on-good:#fff;--calm:#eaf0ff;--done:#e4f5ea;--stop:#fdecea;--wait:#fff4dc;
--red:#a8231c;--amber:#7d5200;--inset:#f6f7fb}
@media (prefers-color-scheme:dark){:root{--ink:#eeeef5;--soft:#b4b6c8;--paper:#13141b;--card:#1e1f29;--line:#3a3c4c;--edge:#8d8fa5;
--accent:#a9bbff;--on-accent:#10163a;--good:#8fdcae;--on-good:#06281a;--calm:#1d2647;--done:#14301f;--stop:#3f1a18;--wait:#38290a;
--red:#ffaba3;--amber:#f3c56b;--inset:#272835}}`;

const frame = `*{box-sizing:border-box}
body{font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;margin:0;color:var(--ink);background:var(--paper);overflow-wrap:anywhere}
main{max-width:42rem;margin:0 auto;padding:2.5rem 1rem 3rem}
h1{font-size:1.75rem;line-height:1.25;margin:0 0 1rem}h2{font-size:1.15rem;line-height:1.3;margin:0}h3{font-size:.9rem;margin:0;color:var(--soft)}
p{margin:.5rem 0}a{color:var(--accent)}small,.soft{color:var(--soft);font-size:.9rem}code{background:var(--inset);padding:.1rem .3rem;border-radius:4px}
.over{margin:0 0 .25rem;color:var(--soft);font-size:.9rem;font-weight:600}
.card,fieldset{background:var(--card);border:1px solid var(--line);border-radius:14px;margin:1.25rem 0;padding:1.25rem;min-width:0}
legend{float:left;width:100%;margin-bottom:.75rem;padding:0;font-size:1.15rem;font-weight:700}legend~*{clear:both}
.banner,.alert{border-radius:10px;padding:.8rem 1rem;margin:1rem 0;border-left:5px solid var(--accent);background:var(--calm)}
.banner strong{display:block}.banner p,.alert p{margin:.2rem 0 0}
.approved{border-color:var(--good);background:var(--done)}.changes_requested{border-color:var(--amber);background:var(--wait)}
.rejected,.alert{border-color:var(--red);background:var(--stop)}.withdrawn{border-color:var(--edge);background:var(--card)}`;

const fields = `label{display:block;font-weight:600;margin:1rem 0 .3rem}label span{font-weight:400;color:var(--soft)}
input,textarea{font:inherit;color:inherit;background:var(--card);width:100%;padding:.6rem .7rem;border:1px solid var(--edge);border-radius:8px}
textarea{display:block;resize:vertical}
.steps{padding-left:1.4rem}.steps li{margin:.6rem 0}.copy{display:block;width:fit-content;max-width:100%;margin:.4rem 0;padding:.6rem .8rem;border:1px solid var(--edge);border-radius:8px;font-size:1.05rem;font-weight:600;user-select:all}
[type=checkbox],[type=radio]{width:1.35rem;height:1.35rem;flex:none;margin:.1rem 0 0;accent-color:var(--accent)}
.tick{display:flex;gap:.7rem;align-items:flex-start;font-weight:400;margin:0;padding:.45rem 0}.tick span{color:var(--ink)}.tick small{display:block}
button{font:inherit;font-weight:600;min-height:2.75rem;margin-top:1rem;padding:.5rem 1.2rem;border:2px solid transparent;border-radius:8px;background:var(--accent);color:var(--on-accent);cursor:pointer}
.choices{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1.25rem}.choices button{flex:1 1 auto;margin:0}
.yes{background:var(--good);color:var(--on-good)}.other{background:var(--card);color:var(--ink);border-color:var(--edge)}.no{background:var(--card);color:var(--red);border-color:var(--red)}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}.alert:focus{outline:3px solid var(--red);outline-offset:2px}`;

/** A card with a post: who posts, what, the first comment under it like an answer, and when. */
const posts = `.head{display:flex;align-items:center;gap:.75rem;margin-bottom:.9rem}.head p{margin:0}.head div{min-width:0}
.badge{flex:none;display:grid;place-items:center;width:2.75rem;height:2.75rem;border-radius:50%;color:#fff;background:#15161c;border:1px solid #4a4c5c;font-weight:700}
.bluesky{background:#0a63cf}.instagram{background:#ad2a72}.facebook{background:#1461d2}.linkedin{background:#0a5fae}.youtube{background:#c01219}.pinterest{background:#b0071a}.telegram{background:#17699d}
.text{white-space:pre-wrap;unicode-bidi:plaintext;margin:.6rem 0}.title{font-size:1.1rem;font-weight:700;margin:.6rem 0}
.files{display:grid;gap:.5rem;margin:.75rem 0}.many{grid-template-columns:1fr 1fr;align-items:start}
figure{margin:0;min-width:0}figcaption{font-size:.85rem;color:var(--soft);padding:.3rem .1rem 0}
img,video{display:block;width:100%;max-width:100%;height:auto;max-height:36rem;object-fit:contain;background:var(--inset);border:1px solid var(--line);border-radius:10px}
.part{border-left:3px solid var(--line);padding-left:1rem;margin:1rem 0}.part+.part{margin-top:1.25rem}
.reply{background:var(--inset);border-radius:10px;padding:.7rem 1rem;margin:1rem 0 0 1.5rem}.reply .text{margin:.2rem 0 0}
.goes{border-top:1px solid var(--line);margin:1rem 0 0;padding:.8rem 0 0;font-size:.9rem;color:var(--soft)}.goes ul{margin:0;padding-left:1.2rem}.goes p{margin:0}.goes p::first-letter{text-transform:uppercase}
.rows{list-style:none;padding:0;margin:.75rem 0 0}.rows li{padding:.5rem 0;border-top:1px solid var(--line)}
@media (max-width:30rem){main{padding-top:1.5rem}.card,fieldset{padding:1rem}h1{font-size:1.5rem}.choices{flex-direction:column}.reply{margin-left:.5rem}}`;

export const style = [colours, frame, fields, posts].join('\n');

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (one) => entities[one] ?? one);

const styleHash = createHash('sha256').update(style).digest('base64');

/** In the page itself: a browser asks for an icon of its own accord, which our policy refuses or the server lacks. */
export const icon = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#2b4acb"/>' +
    '<path d="M4 8.5l2.7 2.7L12 5.6" fill="none" stroke="#fff" stroke-width="2"/></svg>',
).toString('base64');

/**
 * Sent with every page. `form-action 'self'`: a form goes back to us and nowhere else. `data:` is for the icon.
 * @param origins from which pictures and videos are loaded
 * @param more `leadsTo`: where else a form may end, as sources of the policy. Chromium holds `form-action` against the
 *   whole chain of redirects after the form, and stops without a word to the person.
 */
export const pageHeadersWith = (
  origins: readonly string[],
  { leadsTo = [] }: { readonly leadsTo?: readonly string[] } = {},
): Readonly<Record<string, string>> => {
  const files = origins.length === 0 ? '' : ` media-src ${origins.join(' ')};`;
  const pictures = ` img-src ${[...origins, 'data:'].join(' ')};`;
  const forms = ` form-action ${["'self'", ...leadsTo].join(' ')};`;
  return {
    'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${styleHash}';${pictures}${files}${forms} base-uri 'none'; frame-ancestors 'none'`,
    'Referrer-Policy': 'no-referrer',
    'X-Frame-Options': 'DENY',
  };
};
export const pageHeaders = pageHeadersWith([]);

/**
 * Why the form was refused. It takes the focus as the page opens, so that a screen reader begins there and the next Tab
 * leads to the field below it.
 */
export const alertOf = (words: string | null): string =>
  words === null ? '' : `<p class="alert" tabindex="-1" autofocus role="alert">${escapeHtml(words)}</p>`;

/** @param at ISO 8601 */
export const timeOf = (at: string, timezone: string): string => {
  const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'short', timeZone: timezone });
  return `<time datetime="${at}">${escapeHtml(format.format(new Date(at)))}</time> (${escapeHtml(timezone)})`;
};

export const expiry = (at: string): string => `<p><small>This link works until ${timeOf(at, 'UTC')}.</small></p>`;

/**
 * The few pages for people: one template, no script, nothing loaded but the files of a post.
 * @param body trusted HTML: the caller has escaped every value in it.
 */
export const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><link rel="icon" href="data:image/svg+xml;base64,${icon}"><title>${escapeHtml(title)}</title><style>${style}</style></head>
<body><main>
${body}
</main></body>
</html>
`;
