import type { ConnectedProfile } from '#contracts/ports/connector.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { alertOf, escapeHtml, page } from '../http/html.ts';

const nameOf = ({ username, displayName, externalId }: ConnectedProfile): string => {
  const known = [displayName, username === null ? null : `@${username}`].filter((one) => one !== null);
  return known.length === 0 ? externalId : known.join(', ');
};

const tick = (profile: ConnectedProfile, at: number): string =>
  `<label class="tick"><input type="checkbox" name="account" value="${at}"> <span><bdi>${escapeHtml(nameOf(profile))}</bdi></span></label>`;

/** Several accounts of one login. */
export const choicePage = (shown: {
  readonly clientName: string;
  readonly platform: Platform;
  /** In the order in which the choice is sent. */
  readonly profiles: readonly ConnectedProfile[];
  /** Why the choice was refused. */
  readonly words: string | null;
  /** Of the link's page. */
  readonly path: string;
}): string => {
  const { clientName, platform, profiles, words, path } = shown;
  const name = escapeHtml(rulesOf(platform).name);
  const title = `Choose accounts of ${rulesOf(platform).name}`;
  const html = `<h1>Connect to <bdi>${escapeHtml(clientName)}</bdi></h1>
<form method="post">
<fieldset><legend>Which accounts of ${name}?</legend>
${alertOf(words)}
${profiles.map(tick).join('\n')}
<button type="submit">Connect these accounts</button>
</fieldset></form>
<p><a href="${escapeHtml(path)}">Start again</a></p>`;
  return page(words === null ? title : `Not connected: ${title}`, html);
};
