import { createHash } from 'node:crypto';

/** The few pages for people: one template, no script, nothing loaded from anywhere. */

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (one) => entities[one] ?? one);

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color:#1c1c28;background:#fff}
h1{font-size:1.5rem}fieldset{border:1px solid #c9c9d6;border-radius:8px;margin:0 0 1rem;padding:1rem}
legend{font-weight:600;padding:0 .4rem}label{display:block;margin:.5rem 0 .2rem}
input,textarea{font:inherit;width:100%;box-sizing:border-box;padding:.4rem .5rem;border:1px solid #8a8a99;border-radius:6px}
button{font:inherit;margin-top:.8rem;padding:.45rem 1rem;border:0;border-radius:6px;background:#2b4acb;color:#fff}
button.other{background:#4b4b5c}button:focus-visible,input:focus-visible,textarea:focus-visible,a:focus-visible{outline:3px solid #2b4acb;outline-offset:2px}
h2{font-size:1.2rem}h3{font-size:1rem}.post{border:1px solid #c9c9d6;border-radius:8px;padding:.5rem 1rem;margin:.5rem 0;overflow-wrap:anywhere}
.text{white-space:pre-wrap}figure{margin:.5rem 0}img,video{max-width:100%;height:auto}
.alert{border-left:4px solid #b3261e;padding:.5rem 1rem;background:#fdecea}code{background:#f1f1f6;padding:.1rem .3rem}`;

const styleHash = createHash('sha256').update(style).digest('base64');

/**
 * Sent with every page. `form-action 'self'`: a form goes back to us and nowhere else.
 * @param origins from which pictures and videos are loaded
 */
export const pageHeadersWith = (origins: readonly string[]): Readonly<Record<string, string>> => {
  const files = origins.length === 0 ? '' : ` img-src ${origins.join(' ')}; media-src ${origins.join(' ')};`;
  return {
    'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${styleHash}';${files} form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    'Referrer-Policy': 'no-referrer',
    'X-Frame-Options': 'DENY',
  };
};
export const pageHeaders = pageHeadersWith([]);

/** @param body trusted HTML: the caller has escaped every value in it. */
export const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>${escapeHtml(title)}</title><style>${style}</style></head>
<body><main>
${body}
</main></body>
</html>
`;
