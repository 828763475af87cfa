import type { ConnectField, Connector, FormConnector } from '#contracts/ports/connector.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { alertOf, escapeHtml, expiry, page } from './html.ts';

/** The pages that a guest sees. They escape every text that a person has typed. */

export interface ConnectedAccount {
  readonly platform: Platform;
  readonly username: string;
  readonly status: string;
}

/** A form that was refused, shown again with what the guest typed in it. */
export interface RefusedForm {
  /** Null: none of those of the link. */
  readonly platform: Platform | null;
  readonly username: string;
  readonly timezone: string;
  readonly words: string;
}

/** The values of the other fields are never shown again, also where the form was refused. */
const secretField = (platform: Platform, { name, label, hint, maxLength }: ConnectField): string => {
  const id = `${name}-${platform}`;
  const about = hint === null ? '' : ` <span>(${escapeHtml(hint)})</span>`;
  return `<label for="${id}">${escapeHtml(label)}${about}</label>
<input id="${id}" name="${escapeHtml(name)}" type="password" required maxlength="${maxLength}" autocomplete="off">`;
};

export const formConnectorOf = (ways: readonly Connector[] | undefined): FormConnector | undefined =>
  ways?.find((way) => way.kind === 'form');

const form = (platform: Platform, connector: FormConnector | undefined, refused: RefusedForm | null): string => {
  const name = escapeHtml(rulesOf(platform).name);
  const { username = '', timezone = '', words = null } = refused?.platform === platform ? refused : {};
  return `<form method="post">
<fieldset><legend>${name}</legend>
${alertOf(words)}
<input type="hidden" name="platform" value="${platform}">
<label for="username-${platform}">${escapeHtml(connector?.usernameLabel ?? 'Username')}</label>
<input id="username-${platform}" name="username" required maxlength="100" autocomplete="off" autocapitalize="none" spellcheck="false" value="${escapeHtml(username)}">
${(connector?.secrets ?? []).map((field) => secretField(platform, field)).join('\n')}
<label for="timezone-${platform}">Timezone <span>(optional, such as Europe/Berlin)</span></label>
<input id="timezone-${platform}" name="timezone" maxlength="100" autocomplete="off" spellcheck="false" value="${escapeHtml(timezone)}">
<button type="submit">Connect ${name}</button>
</fieldset></form>`;
};

const connectedList = (connected: readonly ConnectedAccount[]): string => {
  if (connected.length === 0) return '';
  const rows = connected.map(
    ({ platform, username, status }) =>
      `<li>${escapeHtml(rulesOf(platform).name)}: <strong><bdi>${escapeHtml(username)}</bdi></strong> (${escapeHtml(status.replaceAll('_', ' '))})</li>`,
  );
  return `<section class="card"><h2>Connected through this link</h2>\n<ul class="rows">\n${rows.join('\n')}\n</ul></section>`;
};

const awaited = (platforms: readonly Platform[]): readonly string[] => {
  if (platforms.length === 0) return [];
  const names = platforms.map((platform) => escapeHtml(rulesOf(platform).name)).join(', ');
  return [`<p class="banner">Cannot be connected here yet: ${names}. Keep this link: it works until it expires.</p>`];
};

export const invitePage = (shown: {
  readonly clientName: string;
  readonly mode: 'live' | 'test';
  readonly platforms: readonly Platform[];
  /** Those of the platforms that can be connected now. */
  readonly offered: readonly Platform[];
  /** Of live networks: what their forms ask for. */
  readonly connectors: Readonly<Partial<Record<Platform, readonly Connector[]>>>;
  readonly expiresAt: string;
  readonly connected: readonly ConnectedAccount[];
  readonly refused: RefusedForm | null;
}): string => {
  const { clientName, mode, platforms, offered, connectors, expiresAt, connected, refused } = shown;
  const title = `Connect accounts to ${clientName}`;
  const isOwnForm = refused !== null && refused.platform !== null && offered.includes(refused.platform);
  const parts = [
    `<h1>Connect accounts to <bdi>${escapeHtml(clientName)}</bdi></h1>`,
    ...(refused === null || isOwnForm ? [] : [alertOf(refused.words)]),
    ...(mode === 'test'
      ? [
          '<p class="soft">These are accounts of the sandbox network: any username will do, and nothing leaves this service.</p>',
        ]
      : []),
    connectedList(connected),
    ...offered.map((platform) => form(platform, formConnectorOf(connectors[platform]), refused)),
    ...awaited(platforms.filter((platform) => !offered.includes(platform))),
    expiry(expiresAt),
  ];
  return page(refused === null ? title : `Not connected: ${title}`, parts.join('\n'));
};
