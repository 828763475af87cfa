import { rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { alertOf, escapeHtml, page } from '../html.ts';

/** A code that the guest posts on the network, and how. */
export const codePage = (shown: {
  readonly clientName: string;
  readonly platform: Platform;
  readonly code: string;
  readonly steps: readonly string[];
  /** What came of the last try. */
  readonly words: string | null;
  /** Of the link's page. */
  readonly path: string;
}): string => {
  const { clientName, platform, code, steps, words, path } = shown;
  const name = escapeHtml(rulesOf(platform).name);
  const html = `<h1>Connect ${name} to <bdi>${escapeHtml(clientName)}</bdi></h1>
<section class="card"><h2>Your code: <code>${escapeHtml(code)}</code></h2>
<ol>
${steps.map((step) => `<li>${escapeHtml(step)}</li>`).join('\n')}
</ol>
${alertOf(words)}
<form method="post"><button type="submit">I have posted it</button></form>
<p class="soft">The code works for 15 minutes, in this browser. Give it to nobody: whoever posts it connects their own account here.</p>
</section>
<p><a href="${escapeHtml(path)}">Start again</a></p>`;
  const title = `Connect ${rulesOf(platform).name} to ${clientName}`;
  return page(words === null ? title : `Not connected yet: ${title}`, html);
};
