import { createPrivateKey, type JsonWebKey } from 'node:crypto';
import { noProxies, readTrustedProxies, type TrustedProxies } from '#runtime/identity/proxies.ts';
import { Secrets } from '#runtime/identity/secrets.ts';

/** Checks and converts the text of a variable. @throws Error that says what it must be, without the variable's name */
export type SettingReader<T> = (text: string) => T;

export const text: SettingReader<string> = (value) => value;
/** `ann@example.com`, or `Ann <ann@example.com>`. */
export const mailAddress: SettingReader<string> = (value) => {
  if (!/^(?:[^<>@\p{Cc}]{1,100}<[^<>@\s]{1,64}@[^<>@\s]{1,200}>|[^<>@\s]{1,64}@[^<>@\s]{1,200})$/u.test(value))
    throw new Error('must be an address like ann@example.com or Ann <ann@example.com>');
  return value;
};
export const integer =
  (min: number, max: number): SettingReader<number> =>
  (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < min || number > max)
      throw new Error(`must be a whole number from ${min} to ${max}`);
    return number;
  };
/** The address of one page: a slash at its end may belong to it. */
export const pageUrl =
  (...protocols: readonly string[]): SettingReader<string> =>
  (value) => {
    if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol) || !value.includes('://')) {
      throw new Error(`must be a URL that begins with ${protocols.map((one) => `${one}//`).join(' or ')}`);
    }
    return value;
  };
/** An address below which others are: without the slash at its end. */
export const url = (...protocols: readonly string[]): SettingReader<string> => {
  const read = pageUrl(...protocols);
  return (value) => read(value).replace(/\/+$/, '');
};
/** A cluster's address names several hosts, so `URL` cannot parse it. */
export const eventStoreUrl: SettingReader<string> = (value) => {
  if (!/^(esdb|esdb\+discover|kurrentdb):\/\/[^\s/?]/.test(value))
    throw new Error('must begin with esdb:// and a host');
  return value;
};
/** As @BotFather gives it. */
export const botToken: SettingReader<string> = (value) => {
  if (!/^\d{3,20}:[\w-]{20,200}$/.test(value)) throw new Error('must be a token like 123456789:ABC… of @BotFather');
  return value;
};
/** One private key of ES256 as a JWK with a `kid`, or several in `{"keys":[…]}`. */
export const signingKeys: SettingReader<readonly JsonWebKey[]> = (value) => {
  try {
    const read = JSON.parse(value) as JsonWebKey & { readonly keys?: unknown };
    const keys: readonly unknown[] = Array.isArray(read.keys) ? read.keys : [read];
    if (keys.length === 0 || keys.length > 10) throw new Error('none, or too many');
    return keys.map((one) => {
      const key = one as JsonWebKey;
      if (typeof key.kid !== 'string' || key.crv !== 'P-256') throw new Error('no kid, or another curve');
      createPrivateKey({ key, format: 'jwk' });
      return key;
    });
  } catch {
    throw new Error('must be a private JWK of the curve P-256 with a kid, or {"keys":[…]} of those');
  }
};
/** The handle may have an @ in front; an app password has no colon. */
export const login: SettingReader<{ readonly handle: string; readonly password: string }> = (value) => {
  const [, handle, password] = /^@?([^\s:@]{3,253}):([^\s:]+)$/.exec(value) ?? [];
  if (handle === undefined || password === undefined) throw new Error('must be handle:app-password');
  return { handle, password };
};
export const list: SettingReader<readonly string[]> = (value) =>
  value
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
const isHostAndPort = (one: string): boolean =>
  /^(\[[0-9a-f:.]+\]|[^\s:/]+):\d+$/i.test(one) && URL.canParse(`tcp://${one}`);
/** A path and a line of text are made of each. */
export const siteTokens: SettingReader<readonly string[]> = (value) => {
  const all = list(value);
  if (all.length > 20 || !all.every((one) => /^[A-Za-z0-9_-]{8,100}$/.test(one)))
    throw new Error('must be at most 20 tokens of letters and digits like MrYmGFtSFSb0FMQcrgGYRdJnZDueUoXT');
  return all;
};
export const brokers: SettingReader<readonly string[]> = (value) => {
  const all = list(value);
  if (!all.every(isHostAndPort)) throw new Error('must be a list like host:9092,other:9092');
  return all;
};
export const targets: SettingReader<readonly string[]> = (value) => {
  const all = list(value);
  const named = all.every((one) => isHostAndPort(one) && URL.canParse(`http://${one}`) && !/[*@?#\\]/.test(one));
  if (!named && value.trim() !== '*') throw new Error('must be * or a list like localhost:3000,10.0.0.5:8080');
  return all;
};
export const topicPrefix: SettingReader<string> = (value) => {
  if (!/^[a-zA-Z0-9._-]{0,100}$/.test(value))
    throw new Error('must consist of letters, digits, dots, underscores and dashes');
  return value;
};
/**
 * Parsed again where it is used; here only so that a wrong value is reported with the other errors of the
 * configuration.
 */
export const secretKeys: SettingReader<string> = (value) => {
  new Secrets(value);
  return value;
};
export const oneOf =
  <T extends string>(...values: readonly T[]): SettingReader<T> =>
  (value) => {
    const known = values.find((one) => one === value);
    if (known === undefined) throw new Error(`must be one of ${values.join(', ')}`);
    return known;
  };
export const proxies: SettingReader<TrustedProxies> = (value) => (value === '' ? noProxies : readTrustedProxies(value));
export const optional =
  <T>(read: SettingReader<T>): SettingReader<T | null> =>
  (value) =>
    value === '' ? null : read(value);

/** A setting: the reader of its text, its default, and its line in `--help`. */
export interface Variable<T> {
  readonly name: string;
  readonly read: SettingReader<T>;
  readonly fallback: T;
  readonly help: string;
}

export const variable = <T>(name: string, read: SettingReader<T>, fallback: T, help: string): Variable<T> => ({
  name,
  read,
  fallback,
  help,
});
