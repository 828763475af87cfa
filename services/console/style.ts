import { hash } from 'node:crypto';
import { style as pageStyle } from '#services/shell/page.ts';

/** The look of the console: that of all pages for people, with a bar at the top, lists and tick boxes. */

const bar = `.skip{position:absolute;left:-999rem}.skip:focus{left:1rem;top:.5rem;background:var(--card);padding:.5rem .8rem;border-radius:8px;z-index:1}
.bar{background:var(--card);border-bottom:1px solid var(--line)}
.bar>div{max-width:60rem;margin:0 auto;padding:.5rem 1rem;display:flex;flex-wrap:wrap;gap:.25rem 1rem;align-items:center}
.bar p,.bar form{margin:0}.brand{font-weight:700}.brand a{color:var(--ink);text-decoration:none;display:inline-block;padding:.6rem 0}
.bar nav{flex:1 1 auto}.bar ul{display:flex;flex-wrap:wrap;gap:0 .25rem;list-style:none;margin:0;padding:0}
.bar nav a{display:block;padding:.6rem .55rem;border-radius:8px;text-decoration:none;border-bottom:3px solid transparent}
.bar [aria-current]{color:var(--ink);font-weight:700;border-bottom-color:var(--accent)}
.bar button{margin:0}.place{flex:0 1 15rem;color:var(--soft);font-size:.9rem}
@media (min-width:60rem){.place{text-align:right}}@media (max-width:48rem){.bar nav{flex-basis:100%}.place{flex:1 1 9rem}}`;

const parts = `.tag{display:inline-block;font-size:.8rem;font-weight:600;border:1px solid var(--edge);border-radius:999px;padding:0 .6rem;white-space:nowrap}
.tag.live{border-color:var(--good);color:var(--good)}.tag.over{border-color:var(--red);color:var(--red);margin:0}
.notice{border-radius:10px;padding:.8rem 1rem;margin:1rem 0;border-left:5px solid var(--good);background:var(--done)}
select{font:inherit;color:inherit;background:var(--card);width:100%;min-height:2.75rem;padding:.5rem .7rem;border:1px solid var(--edge);border-radius:8px}
summary{display:inline-block;cursor:pointer;min-height:2.75rem;padding:.55rem 0;color:var(--accent);font-weight:600;border-radius:8px}
details[open]>summary{margin-bottom:.25rem}details form{background:var(--inset);border-radius:10px;padding:.8rem 1rem;margin-bottom:.5rem}
.acts{display:flex;flex-wrap:wrap;gap:0 1.25rem}.acts details{flex:0 1 auto}.acts details[open]{flex:1 1 100%}
.secret{display:block;padding:.8rem 1rem;margin:.5rem 0;font-size:1rem;user-select:all;border:1px solid var(--edge)}
pre{background:var(--inset);padding:.8rem 1rem;border-radius:10px;white-space:pre-wrap;overflow-wrap:anywhere}
.codes{columns:2;list-style:none;padding:0}.codes code{font-size:1rem}.qr{width:14rem;max-width:100%;border:0;background:#fff}
.rows h3{color:var(--ink);font-size:1rem}.rows p{margin:.15rem 0}.rows li li{border:0;padding:.1rem 0}.wide{max-width:48rem}.links{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem}.links a,.links p a{display:inline-block;padding:.4rem 0}
.facts{margin:.5rem 0}.facts dt{color:var(--soft);font-size:.9rem}.facts dd{margin:0 0 .6rem;font-weight:600}
.caution{border-radius:10px;padding:.8rem 1rem;margin:1rem 0;border-left:5px solid var(--amber);background:var(--wait)}
[hidden]{display:none}.card>[type=hidden]+label,.card>[hidden]+button{margin-top:0}@media (max-width:30rem){.codes{columns:1}.bar nav{margin:0 -.3rem}.bar ul{gap:0}.bar nav a{padding:.6rem .3rem;font-size:.95rem}}`;

export const style = [pageStyle, bar, parts].join('\n');

const styleHash = hash('sha256', style, 'base64');

/** What a page needs beyond the least. */
export interface PagePolicy {
  /** The script of passkeys, from our own origin. */
  readonly script?: boolean;
  /**
   * The form ends with the app that asked for consent: Chromium holds `form-action` against the whole chain of
   * redirects after the form and would stop there without a word.
   */
  readonly leaves?: boolean;
}

/**
 * Sent with every page. The referrer goes to pages of ours alone; with `no-referrer` a browser would send its forms with
 * `Origin: null`.
 */
export const headersFor = ({ script = false, leaves = false }: PagePolicy): Readonly<Record<string, string>> => ({
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    'img-src data:',
    ...(script ? ["script-src 'self'"] : []),
    ...(leaves ? [] : ["form-action 'self'"]),
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cache-Control': 'no-store',
});
