import { rules } from '#domain/platforms/index.ts';
import type { AppAddress, AppSettings } from '#domain/platforms/rules.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { integer, optional, pageUrl, text, url, type Variable, variable } from '../config-values.ts';

/** The operator's app at each network that takes one, from the rules of the network: `X_CLIENT_ID`, `X_API`. */

export type AppSettingKey = keyof AppSettings;

const wordsOfAddress: Readonly<Record<AppAddress, string>> = {
  api: 'the API',
  authorize: 'the page on which an owner consents',
  tokens: 'the server that gives tokens',
  login: 'the server that says whose login it is',
  uploads: 'the server that takes files',
  figures: 'the API of figures',
};

type Named = readonly [key: AppSettingKey, variable: Variable<unknown>];

const upper = (member: string): string => member.replaceAll(/[A-Z]/g, '_$&').toUpperCase();

const settingsOf = (platform: Platform): readonly Named[] => {
  const { app, name, appBudget, appUnits } = rules[platform];
  if (app === undefined) return [];
  const one = (member: string, of: (variable: string) => Variable<unknown>): Named => {
    const key = `${platform}${member.charAt(0).toUpperCase()}${member.slice(1)}` as AppSettingKey;
    return [key, of(`${platform.toUpperCase()}_${upper(member)}`)];
  };
  const { addresses, version, scopes, monthlyReads, countsCalls } = app;
  const secret = `${name}: its client secret; a public client has none`;
  const id = `${name}: the client id of your app; without it ${name} is not offered`;
  return [
    one('clientId', (setting) => variable(setting, optional(text), null, id)),
    one('clientSecret', (setting) => variable(setting, optional(text), null, secret)),
    ...Object.entries(addresses).map(([address, usual]) =>
      one(address, (setting) => {
        const words = `${name}: ${wordsOfAddress[address as AppAddress]}`;
        // Pinterest's page has a slash at its end. The others are put before the paths of calls.
        const read = address === 'authorize' ? pageUrl : url;
        return variable(setting, read('https:', 'http:'), usual, words);
      }),
    ),
    ...(version === undefined
      ? []
      : [one('version', (setting) => variable(setting, versionOfApi, version, `${name}: the version of its API`))]),
    ...(scopes === undefined
      ? []
      : [
          one('scopes', (setting) => {
            const words = `${name}: the permissions that your app has, with spaces between: owners are asked for these`;
            return variable(setting, scopesOf, scopes.join(' '), words);
          }),
        ]),
    ...(countsCalls === undefined
      ? []
      : Object.entries({ appBudget, appUnits }).flatMap(([member, rule]) =>
          rule === undefined
            ? []
            : [
                one(member, (setting) => {
                  const { name: what, every, zone, limit, counts } = rule;
                  const may = counts === 'accounts' ? 'post for' : 'use';
                  // Where accounts are counted, or other calls apart, figures take nothing of it.
                  const isOfPosts = counts === 'accounts' || (member === 'appBudget' && appUnits !== undefined);
                  const left = isOfPosts ? '' : '; figures leave half of them to posts';
                  const words = `${name}: ${what} that your app may ${may} in a ${every} (${zone})${left}`;
                  return variable(setting, integer(1, 100_000_000), limit, words);
                }),
              ],
        )),
    ...(monthlyReads === undefined
      ? []
      : [
          one('monthlyReads', (setting) => {
            const words = `${name}: what may be read in a month, a post one, an account two: ${name} bills each; at 0 no account can be connected`;
            return variable(setting, integer(0, 100_000_000), monthlyReads, words);
          }),
        ]),
  ];
};

const versionOfApi = (value: string): string => {
  if (!/^[\w.-]{1,20}$/.test(value)) throw new Error('must be a version like 202611 or v25.0');
  return value;
};

const scopesOf = (value: string): string => {
  if (!/^[\w.:/-]{1,100}(?: [\w.:/-]{1,100}){0,49}$/.test(value))
    throw new Error('must be names with one space between');
  return value;
};

export const appSettings: Readonly<Partial<Record<AppSettingKey, Variable<unknown>>>> = Object.fromEntries(
  platforms.flatMap(settingsOf),
);

export const appSettingKeys = Object.keys(appSettings) as readonly AppSettingKey[];
