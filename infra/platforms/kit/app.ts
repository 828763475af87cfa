import { rulesOf } from '#domain/platforms/index.ts';
import type { AppAddress, AppSettings } from '#domain/platforms/rules.ts';
import type { Platform } from '#schemas/common.ts';

/** The operator's app at a network, from the settings that the rules of the network name: `X_CLIENT_ID`, `X_API`. */

export interface NetworkApp {
  readonly id: string;
  /** Null: a public client, which has none. */
  readonly secret: string | null;
  readonly addresses: Readonly<Partial<Record<AppAddress, string>>>;
  /** Null: the network has one version. */
  readonly version: string | null;
  /** What the app may read in a month, where the network bills reads; null: no bound. */
  readonly monthlyReads: number | null;
}

const names: readonly AppAddress[] = ['api', 'authorize', 'tokens', 'uploads', 'figures'];
const capital = <T extends string>(text: T): Capitalize<T> =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}` as Capitalize<T>;

/** The app as it is set; the id is null where the operator has none. */
export const appSetOf = (
  platform: Platform,
  config: AppSettings,
): Omit<NetworkApp, 'id'> & { readonly id: string | null } => {
  const { addresses: usual, version = null } = rulesOf(platform).app ?? {};
  const addresses = names.flatMap((name) => {
    const address = config[`${platform}${capital(name)}`] ?? usual?.[name];
    return address === undefined ? [] : [[name, address]];
  });
  return {
    id: config[`${platform}ClientId`] ?? null,
    secret: config[`${platform}ClientSecret`] ?? null,
    addresses: Object.fromEntries(addresses),
    version: config[`${platform}Version`] ?? version,
    monthlyReads: config[`${platform}MonthlyReads`] ?? null,
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
