import type { ConnectField, Connector } from '#contracts/ports/connector.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { alertOf, escapeHtml, expiry, page } from '#services/shell/page.ts';
import { longestUsername, nameOfWay } from './form.ts';

/** The pages that a guest sees. They escape every text that a person has typed. */

export interface ConnectedAccount {
  readonly platform: Platform;
  /** By which its owner knows it. */
  readonly name: string;
  readonly status: string;
}

/** A form that was refused, shown again with what the guest typed in it. */
export interface RefusedForm {
  /** Null: none of those of the link. */
  readonly platform: Platform | null;
  /** See `nameOfWay`. */
  readonly way: string;
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

type Field = readonly [name: string, label: string, input: string];

/** The ids of several forms for one network differ. */
const fieldOf = (platform: Platform, way: string, [name, label, input]: Field): string => {
  const id = way === 'form' ? `${name}-${platform}` : `${name}-${platform}-${way}`;
  return `<label for="${id}">${label}</label>\n<input id="${id}" name="${name}" ${input}>`;
};

/** Null: the network itself asks who the guest is. */
const usernameLabelOf = (connector: Connector | null): string | null => {
  if (connector === null) return 'Username';
  return connector.kind === 'code' ? null : connector.usernameLabel;
};

const buttonOf = (connector: Connector | null, name: string): string => {
  if (connector?.kind === 'consent') return `Continue to ${name}`;
  return connector?.kind === 'code' ? `Get a code for ${name}` : `Connect ${name}`;
};

/** For guests who have never done this: what comes after the button. */
const aboutOf = (connector: Connector | null, name: string): readonly string[] => {
  if (connector?.kind === 'consent') {
    return [`<p class="soft">You sign in at ${name} and allow it there. We never see your password.</p>`];
  }
  if (connector?.kind !== 'code') return [];
  return [
    `<p class="soft">You post a short message at ${name}, which shows that the account is yours. No password is needed.</p>`,
  ];
};

const lowerFirst = (text: string): string => `${text.charAt(0).toLowerCase()}${text.slice(1)}`;

interface Way {
  readonly platform: Platform;
  /** Null: the sandbox. */
  readonly connector: Connector | null;
  readonly isOnly: boolean;
}

const isRefused = ({ platform, connector }: Way, refused: RefusedForm): boolean =>
  refused.platform === platform && refused.way === nameOfWay(connector);

/** Where the guest goes. */
const placeOf = ({ platform, connector }: Way): string =>
  escapeHtml(rulesOf((connector?.kind === 'consent' ? connector.by : undefined) ?? platform).name);

const form = (way: Way, path: string, refused: RefusedForm | null): string => {
  const { platform, connector, isOnly } = way;
  const name = escapeHtml(rulesOf(platform).name);
  const [kind, place] = [nameOfWay(connector), placeOf(way)];
  const title = isOnly || connector === null ? name : `${name}: ${escapeHtml(lowerFirst(connector.title))}`;
  const { username = '', timezone = '', words = null } = refused !== null && isRefused(way, refused) ? refused : {};
  const usernameLabel = usernameLabelOf(connector);
  const typed = 'autocomplete="off"';
  const usernameInput = `required maxlength="${longestUsername}" ${typed} autocapitalize="none" spellcheck="false" value="${escapeHtml(username)}"`;
  const fields = [
    ...(usernameLabel === null
      ? []
      : [fieldOf(platform, kind, ['username', escapeHtml(usernameLabel), usernameInput])]),
    ...(connector?.kind === 'form' ? connector.secrets : []).map((field) => secretField(platform, field)),
    fieldOf(platform, kind, [
      'timezone',
      'Timezone <span>(optional, such as Europe/Berlin)</span>',
      `maxlength="100" ${typed} spellcheck="false" value="${escapeHtml(timezone)}"`,
    ]),
  ];
  return `<form method="post" action="${escapeHtml(path)}">
<fieldset><legend>${title}</legend>
${[alertOf(words), ...aboutOf(connector, place)].join('\n')}
<input type="hidden" name="platform" value="${platform}"><input type="hidden" name="way" value="${kind}">
${fields.join('\n')}
<button type="submit">${buttonOf(connector, place)}</button>
</fieldset></form>`;
};

const connectedList = (connected: readonly ConnectedAccount[]): string => {
  if (connected.length === 0) return '';
  const rows = connected.map(
    ({ platform, name, status }) =>
      `<li>${escapeHtml(rulesOf(platform).name)}: <strong><bdi>${escapeHtml(name)}</bdi></strong> (${escapeHtml(status.replaceAll('_', ' '))})</li>`,
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
  /** Of this page, with the token of the link. */
  readonly path: string;
  readonly platforms: readonly Platform[];
  /** Those of the platforms that can be connected now. */
  readonly offered: readonly Platform[];
  /** Of live networks: the ways to connect an account, in the order in which they are offered. */
  readonly connectors: Readonly<Partial<Record<Platform, readonly Connector[]>>>;
  readonly expiresAt: string;
  readonly connected: readonly ConnectedAccount[];
  readonly refused: RefusedForm | null;
}): string => {
  const { clientName, mode, path, platforms, offered, connectors, expiresAt, connected, refused } = shown;
  const title = `Connect accounts to ${clientName}`;
  const ways = offered.flatMap((platform): readonly Way[] => {
    const all = mode === 'test' ? [null] : (connectors[platform] ?? []);
    return all.map((connector) => ({ platform, connector, isOnly: all.length === 1 }));
  });
  const isOwnForm = refused !== null && ways.some((way) => isRefused(way, refused));
  const parts = [
    `<h1>Connect accounts to <bdi>${escapeHtml(clientName)}</bdi></h1>`,
    ...(refused === null || isOwnForm ? [] : [alertOf(refused.words)]),
    ...(mode === 'test'
      ? [
          '<p class="soft">These are accounts of the sandbox network: any username will do, and nothing leaves this service.</p>',
        ]
      : [`<p>Connect an account, and posts for <bdi>${escapeHtml(clientName)}</bdi> can go out there.</p>`]),
    connectedList(connected),
    ...ways.map((way) => form(way, path, refused)),
    ...awaited(platforms.filter((platform) => !offered.includes(platform))),
    expiry(expiresAt),
  ];
  return page(refused === null ? title : `Not connected: ${title}`, parts.join('\n'));
};
