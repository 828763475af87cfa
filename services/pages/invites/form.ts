import type { Context } from 'koa';
import type { Connector } from '#contracts/ports/connector.ts';
import { connectable, normalizePlatform } from '#domain/platforms/index.ts';
import { isTimezone } from '#domain/zones.ts';
import type { Platform } from '#schemas/common.ts';
import { type Deps, liveNetworksOf } from '#services/api/call/deps.ts';
import { Refusal } from '#services/api/call/refusal.ts';
import { readBody } from '#services/api/http/rest.ts';
import type { OpenInvite } from './open-invite.ts';
import { refuse } from './tools.ts';

/** The form by which a guest begins. */

/** As the guest sent it. */
export interface Typed {
  readonly platform: Platform | null;
  /** See `nameOfWay`; empty: the form, as the sandbox has no other way. */
  readonly way: string;
  readonly username: string;
  readonly timezone: string;
  /** By the name of the field; never shown again. */
  readonly secrets: ReadonlyMap<string, string>;
}

export interface Wanted {
  readonly platform: Platform;
  /** Null: the sandbox. */
  readonly connector: Connector | null;
  readonly username: string;
  readonly timezone: string | null;
  readonly secrets: ReadonlyMap<string, string>;
}

const formLimit = 16 * 1024;

/** Fields of every network; what else a form has is a secret of the guest. */
const plainFields = ['platform', 'way', 'username', 'timezone'];

export const fieldsOf = async (ctx: Context): Promise<URLSearchParams> => {
  if (ctx.is('application/x-www-form-urlencoded') === false) {
    throw new Refusal('unsupported_media_type', 'Send the form of this page.');
  }
  return new URLSearchParams((await readBody(ctx.req, formLimit)).toString('utf8'));
};

export const readForm = async (ctx: Context): Promise<Typed> => {
  const form = await fieldsOf(ctx);
  const text = (name: string): string => (form.get(name) ?? '').trim();
  const secrets = new Map([...form].filter(([name]) => !plainFields.includes(name)).slice(0, 10));
  const platform = normalizePlatform(text('platform'));
  return { platform, way: text('way') || 'form', username: text('username'), timezone: text('timezone'), secrets };
};

/** Ways to connect a live account of the network. */
export const waysOf = ({ live }: Pick<Deps, 'live'>, platform: Platform): readonly Connector[] =>
  live?.connectors[platform] ?? [];

/** What names a way in the form: its kind, and where two of a kind would be one, the network on whose page the guest signs in. */
export const nameOfWay = (connector: Connector | null): string => {
  if (connector === null) return 'form';
  return connector.kind === 'consent' && connector.by !== undefined ? `consent-${connector.by}` : connector.kind;
};

/** A handle of Bluesky is the name of a host (RFC 1035). */
export const longestUsername = 253;

const noSuchWay = 'That network cannot be connected here.';

const checkSecrets = (connector: Connector | null, secrets: ReadonlyMap<string, string>): void => {
  for (const { name, label, maxLength } of connector?.kind === 'form' ? connector.secrets : []) {
    const given = secrets.get(name) ?? '';
    if (given === '') throw refuse(`Give the ${label}.`);
    if (given.length > maxLength) throw refuse(`The ${label} has at most ${maxLength} characters.`);
  }
};

/** Whether the guest says who they are before the network is asked. */
const asksUsername = (connector: Connector | null): boolean =>
  connector === null || connector.kind === 'form' || (connector.kind === 'consent' && connector.usernameLabel !== null);

/** @throws Refusal with words for the guest. */
export const checked = (deps: Deps, typed: Typed, { state, mode }: OpenInvite): Wanted => {
  const { platform, way, timezone, secrets } = typed;
  if (platform === null || !state.platforms.includes(platform)) throw refuse('This link is not for that network.');
  if (!connectable(mode, state.platforms, liveNetworksOf(deps)).includes(platform)) throw refuse(noSuchWay);
  const connector = mode === 'test' ? null : waysOf(deps, platform).find((one) => nameOfWay(one) === way);
  if (connector === undefined) throw refuse(noSuchWay);
  const username = typed.username.replace(/^@/, '');
  if (asksUsername(connector) && (username === '' || username.length > longestUsername || /\p{C}/u.test(username))) {
    throw refuse(`Give a username of 1 to ${longestUsername} characters.`);
  }
  if (timezone !== '' && !isTimezone(timezone))
    throw refuse('That is no timezone: give one such as Europe/Berlin, or none.');
  checkSecrets(connector, secrets);
  return { platform, connector, username, timezone: timezone === '' ? null : timezone, secrets };
};
