import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { rulesOf } from '#domain/platforms/index.ts';
import type { AppAddress, AppSettings } from '#domain/platforms/rules.ts';
import type { Platform } from '#schemas/common.ts';
import { type Members, parsed } from '../shared/members.ts';

/** The operator's app at a network, from the settings that the rules of the network name: `X_CLIENT_ID`, `X_API`. */

export interface NetworkApp {
  readonly id: string;
  /** Null: a public client, which has none. */
  readonly secret: string | null;
  readonly addresses: Readonly<Partial<Record<AppAddress, string>>>;
  /** Null: the network has one version. */
  readonly version: string | null;
  /** What owners are asked for. Absent: all of the network's table. */
  readonly scopes?: readonly string[];
  /** What the app may read in a month, where the network bills reads; null: no bound. */
  readonly monthlyReads: number | null;
  /** Calls that the app may make in the window of the network's rule. Absent: they are not counted here. */
  readonly budget?: number;
  /** The same in units, where the network counts so. */
  readonly units?: number;
}

const names: readonly AppAddress[] = ['api', 'authorize', 'tokens', 'login', 'uploads', 'figures'];
const capital = <T extends string>(text: T): Capitalize<T> =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}` as Capitalize<T>;

/** The app as it is set; the id is null where the operator has none. */
export const appSetOf = (
  platform: Platform,
  config: AppSettings,
): Omit<NetworkApp, 'id'> & { readonly id: string | null } => {
  const { app, appBudget, appUnits } = rulesOf(platform);
  const { addresses: usual, version = null, scopes, countsCalls } = app ?? {};
  const budget = countsCalls === true ? (config[`${platform}AppBudget`] ?? appBudget?.limit) : undefined;
  const units = countsCalls === true ? (config[`${platform}AppUnits`] ?? appUnits?.limit) : undefined;
  const asked = config[`${platform}Scopes`]?.split(' ') ?? scopes;
  const addresses = names.flatMap((name) => {
    const address = config[`${platform}${capital(name)}`] ?? usual?.[name];
    return address === undefined ? [] : [[name, address]];
  });
  return {
    id: config[`${platform}ClientId`] ?? null,
    secret: config[`${platform}ClientSecret`] ?? null,
    addresses: Object.fromEntries(addresses),
    version: config[`${platform}Version`] ?? version,
    ...(asked === undefined ? {} : { scopes: asked }),
    monthlyReads: config[`${platform}MonthlyReads`] ?? null,
    ...(budget === undefined ? {} : { budget }),
    ...(units === undefined ? {} : { units }),
  };
};

/** Null: the operator has no app, so the network is not offered. */
export const appOf = (platform: Platform, config: AppSettings): NetworkApp | null => {
  const { id, ...app } = appSetOf(platform, config);
  return id === null ? null : { id, ...app };
};

/**
 * An address of ours, which begins with the name of one of the app's: `{tokens}/oauth/{version}/token`. What a network named
 * is none of ours and stays as it is.
 */
export const addressOf = ({ addresses, version }: NetworkApp, text: string): string =>
  text.startsWith('{')
    ? text.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
        const value = name === 'version' ? version : addresses[name as AppAddress];
        if (value === undefined || value === null) throw new Error(`the app has no ${name} for ${text}`);
        return value;
      })
    : text;

/** As a server may read it: two ways of writing one path are one. Escapes may be escaped themselves. */
const plainPath = (path: string): string => {
  let text = path;
  for (let times = 0; times < 3; times += 1) {
    text = text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  const names: string[] = [];
  for (const name of text.toLowerCase().split(/[/\\]+/)) {
    if (name === '..') names.pop();
    else if (name !== '' && name !== '.') names.push(name);
  }
  return `/${names.join('/')}`;
};

const isBelow = (path: string, base: string): boolean => base === '/' || path === base || path.startsWith(`${base}/`);

/** An address below one of the app's. */
export interface OwnPlace {
  readonly name: AppAddress;
  /** Below it, in lower case, without a slash at its end: `/2/tweets`. */
  readonly path: string;
}

/** Those of the app's addresses that an address lies below; none: it is another server's, and gets no token. */
export const placesOf = ({ addresses }: NetworkApp, text: string): readonly OwnPlace[] => {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '') return [];
  const path = plainPath(url.pathname);
  return names.flatMap((name): readonly OwnPlace[] => {
    const own = URL.parse(addresses[name] ?? '');
    if (own === null || own.origin !== url.origin) return [];
    const base = plainPath(own.pathname);
    if (!isBelow(path, base) || !isBelow(url.pathname, own.pathname === '/' ? '/' : own.pathname.replace(/\/$/, '')))
      return [];
    return [{ name, path: base === '/' ? path : path.slice(base.length) || '/' }];
  });
};

/** Of a public client, which has no secret: no other process goes on with its uploads. */
const ofProcess = randomBytes(32);
const [ivBytes, tagBytes] = [12, 16];

const keyOf = ({ id, secret }: Pick<NetworkApp, 'id' | 'secret'>): Buffer =>
  Buffer.from(hkdfSync('sha256', secret ?? ofProcess, id, 'upload state', 32));

/**
 * Checkpoints are events, and an address that takes a file without a token is as secret as one: its members are sealed under
 * the app's own secret. With another secret the upload begins anew.
 */
export const sealed = (app: Pick<NetworkApp, 'id' | 'secret'>, members: Members): string => {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv('aes-256-gcm', keyOf(app), iv);
  const text = Buffer.concat([cipher.update(JSON.stringify(members), 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url');
};

/** Null: it was sealed under another secret, or it is no seal. */
export const opened = (app: Pick<NetworkApp, 'id' | 'secret'>, text: string): Members | null => {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length < ivBytes + tagBytes) return null;
  try {
    const decipher = createDecipheriv('aes-256-gcm', keyOf(app), bytes.subarray(0, ivBytes));
    decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes));
    return parsed(Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()]));
  } catch {
    return null;
  }
};
