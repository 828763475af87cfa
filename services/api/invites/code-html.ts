import { rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { alertOf, escapeHtml, page } from '../http/html.ts';

/** One press or click marks all of the message. */
const stepOf = (step: string, message: string): string => {
  const [before = '', ...after] = step.split(message);
  const copied = after.length === 0 ? '' : `<code class="copy">${escapeHtml(message)}</code>`;
  return `<li>${escapeHtml(before)}${copied}${escapeHtml(after.join(message))}</li>`;
};

/** A message with a code that the guest posts on the network, and how. */
export const codePage = (shown: {
  readonly clientName: string;
  readonly platform: Platform;
  readonly message: string;
  readonly steps: readonly string[];
  /** What came of the last try. */
  readonly words: string | null;
  /** Of the link's page. */
  readonly path: string;
}): string => {
  const { clientName, platform, message, steps, words, path } = shown;
  const { name } = rulesOf(platform);
  const html = `<h1>Connect ${escapeHtml(name)} to <bdi>${escapeHtml(clientName)}</bdi></h1>
<section class="card"><h2>Show which account is yours</h2>
<ol class="steps">
${steps.map((step) => stepOf(step, message)).join('\n')}
</ol>
${alertOf(words)}
<form method="post"><button type="submit">I have posted it</button></form>
<p class="soft">The message works for 15 minutes, and only for this browser. Post it nowhere else: the place where it is posted is connected.</p>
</section>
<p><a href="${escapeHtml(path)}">Start again</a></p>`;
  const title = `Connect ${name} to ${clientName}`;
  return page(words === null ? title : `Not connected yet: ${title}`, html);
};
