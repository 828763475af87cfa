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
input{font:inherit;width:100%;box-sizing:border-box;padding:.4rem .5rem;border:1px solid #8a8a99;border-radius:6px}
button{font:inherit;margin-top:.8rem;padding:.45rem 1rem;border:0;border-radius:6px;background:#2b4acb;color:#fff}
.alert{border-left:4px solid #b3261e;padding:.5rem 1rem;background:#fdecea}code{background:#f1f1f6;padding:.1rem .3rem}`;

const styleHash = createHash('sha256').update(style).digest('base64');

/** Sent with every page. `form-action 'self'`: a form goes back to us and nowhere else. */
export const pageHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${styleHash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
};

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
