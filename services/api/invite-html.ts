import { rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { escapeHtml, page } from './html.ts';

/** The pages that a guest sees. They escape every text that a person has typed. */

export interface ConnectedAccount {
  readonly platform: Platform;
  readonly username: string;
  readonly status: string;
}

const form = (platform: Platform): string => {
  const name = escapeHtml(rulesOf(platform).name);
  return `<form method="post">
<fieldset><legend>${name}</legend>
<input type="hidden" name="platform" value="${platform}">
<label for="username-${platform}">Username</label>
<input id="username-${platform}" name="username" required maxlength="100" autocomplete="off">
<label for="timezone-${platform}">Timezone (optional, such as Europe/Berlin)</label>
<input id="timezone-${platform}" name="timezone" maxlength="100" autocomplete="off">
<button type="submit">Connect ${name}</button>
</fieldset></form>`;
};

const connectedList = (connected: readonly ConnectedAccount[]): string => {
  if (connected.length === 0) return '';
  const rows = connected.map(
    ({ platform, username, status }) =>
      `<li>${escapeHtml(rulesOf(platform).name)}: <strong>${escapeHtml(username)}</strong> (${escapeHtml(status.replaceAll('_', ' '))})</li>`,
  );
  return `<h2>Connected through this link</h2>\n<ul>\n${rows.join('\n')}\n</ul>`;
};

const awaited = (platforms: readonly Platform[]): readonly string[] => {
  if (platforms.length === 0) return [];
  const names = platforms.map((platform) => escapeHtml(rulesOf(platform).name)).join(', ');
  return [`<p class="alert">Cannot be connected here yet: ${names}. Keep this link: it works until it expires.</p>`];
};

export const invitePage = (shown: {
  readonly clientName: string;
  readonly mode: 'live' | 'test';
  readonly platforms: readonly Platform[];
  /** Those of the platforms that can be connected now. */
  readonly offered: readonly Platform[];
  readonly expiresAt: string;
  readonly connected: readonly ConnectedAccount[];
  readonly alert: string | null;
}): string => {
  const { clientName, mode, platforms, offered, expiresAt, connected, alert } = shown;
  const parts = [
    ...(mode === 'test'
      ? ['<p>These are accounts of the sandbox network: any username will do, and nothing leaves this service.</p>']
      : []),
    ...offered.map(form),
    ...awaited(platforms.filter((platform) => !offered.includes(platform))),
  ];
  return page(
    `Connect accounts to ${clientName}`,
    `<h1>Connect accounts to ${escapeHtml(clientName)}</h1>
${alert === null ? '' : `<p class="alert" role="alert">${escapeHtml(alert)}</p>`}
${connectedList(connected)}
${parts.join('\n')}
<p><small>This link works until <time datetime="${expiresAt}">${expiresAt.slice(0, 16).replace('T', ' ')} UTC</time>.</small></p>`,
  );
};
