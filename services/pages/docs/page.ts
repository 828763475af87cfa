import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { escapeHtml } from '#services/shell/page.ts';
import type { Guide } from './guides.ts';

/** The page around the viewer. Without scripts, and until the viewer is there, it lists the guides and the contract. */

/**
 * The viewer writes style elements and attributes of its own, so styles may be inline; scripts may not, and nothing is
 * loaded from another origin.
 */
export const docsHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    `default-src 'none'`,
    `script-src 'self'`,
    `style-src 'unsafe-inline'`,
    `connect-src 'self'`,
    `img-src 'self' data:`,
    `font-src 'self' data:`,
    `form-action 'none'`,
    `base-uri 'none'`,
    `frame-ancestors 'none'`,
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
};

/** Of the files that the page loads. */
interface Versions {
  readonly viewer: string;
  readonly start: string;
  readonly reference: string;
}

export const paths = {
  page: '/docs',
  viewer: '/docs/viewer.js',
  start: '/docs/start.js',
  reference: '/docs/reference.json',
} as const;

export const guidePath = (name: string): string => `/docs/guides/${name}.md`;

/** Everything in the viewer that talks to its maker, sends requests or keeps a token is off. */
const configuration = {
  agent: { disabled: true },
  mcp: { disabled: true },
  telemetry: false,
  withDefaultFonts: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  hideTestRequestButton: true,
  persistAuth: false,
  hiddenClients: true,
  documentDownloadType: 'none',
  theme: 'default',
  modelsSectionLabel: 'Schemas',
  showOperationId: true,
} as const;

/**
 * A guide has no operations to list beside it, and takes that column too. The viewer cuts the text of a section after
 * some lines until somebody opens it from the list; a reader who scrolls would see only the beginning of each guide.
 */
const css = `
section[id*="/tag/guide-"] .section-column:nth-child(2){display:none}
section[id*="/tag/guide-"] .section-column:first-child{max-width:56rem}
section[id*="/tag/guide-"] .markdown{display:block;overflow:visible;-webkit-line-clamp:none}
`;

export const startScript = (reference: string): string => `'use strict';
(() => {
  const plain = document.getElementById('plain');
  const configuration = ${JSON.stringify({ ...configuration, customCss: css })};
  Scalar.createApiReference('#reference', {
    ...configuration,
    url: ${JSON.stringify(reference)},
    onLoaded: () => plain.remove(),
  });
})();
`;

const style = `body{margin:0;color-scheme:light dark}
#plain{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}
#plain h1{font-size:1.5rem}#plain h2{font-size:1.1rem}`;

const link = (href: string, text: string): string => `<li><a href="${escapeHtml(href)}">${escapeHtml(text)}</a></li>`;

export const docsPage = (title: string, guides: readonly Guide[], versions: Versions): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${escapeHtml(title)} API reference</title>
<link rel="icon" href="data:,"><style>${style}</style></head>
<body>
<main id="plain">
<h1>${escapeHtml(title)} API reference</h1>
<noscript><p>The reference needs scripts. Everything in it is also here:</p></noscript>
<h2>Guides</h2>
<ul>
${guides.map(({ name, title: words }) => link(guidePath(name), words)).join('\n')}
</ul>
<h2>For programs</h2>
<ul>
${link('/v1/openapi.json', 'The contract, OpenAPI 3.1')}
${link('/v1/asyncapi.json', 'The webhook events, AsyncAPI 3.0')}
${link('/v1/errors', 'The catalogue of error codes')}
</ul>
</main>
<div id="reference"></div>
<script src="${paths.viewer}?v=${versions.viewer}"></script>
<script src="${paths.start}?v=${versions.start}"></script>
</body>
</html>
`;

/**
 * The script of Scalar, the viewer. Its own package has 272 others below it, 287 MB, for this one file. Scalar's plugin
 * for Fastify has 20 and holds the same file as a string literal, so we read the literal and run nothing of the plugin.
 */
const holder = '@scalar/fastify-api-reference';
const opening = 'var standalone_default = ';

/** A literal of JavaScript; beside JSON it may hold control characters as they are. */
const parseLiteral = (literal: string): string =>
  JSON.parse(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what JSON refuses within a string
    literal.replace(/[\u0000-\u001f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );

/** @throws Error when another version of the package holds the script in another form */
export const readViewer = async (): Promise<string> => {
  const file = createRequire(import.meta.url).resolve(holder);
  const lines = (await readFile(file, 'utf8')).split('\n');
  const line = lines.find((one) => one.startsWith(opening));
  if (line === undefined) throw new Error(`${holder} does not hold the viewer where it was`);
  const script = parseLiteral(line.slice(opening.length, line.lastIndexOf('"') + 1));
  // The address of a source map that we do not serve: a browser's tools would ask for it.
  return script.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n');
};
