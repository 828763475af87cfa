import { lazy } from '#domain/lazy.ts';
import { scopesOf } from '#domain/roles.ts';
import { type Scope, scopes } from '#schemas/apikey.ts';
import type { Mode, Role } from '#schemas/common.ts';

/** How the pages name things to people. */

const scopeWords: Readonly<Record<Scope, string>> = {
  'agency.read': 'See the name, the time zone and the limits of the workspace',
  'clients.read': 'See clients',
  'clients.manage': 'Create, change and archive clients, and say whether their posts need approval',
  'accounts.read': 'See the connected social accounts',
  'accounts.connect': 'Make links with which others connect their social accounts, and disconnect accounts',
  'posts.read': 'See posts, and where and when they are published',
  'posts.compose': 'Write, change, schedule, publish and delete posts',
  'analytics.read': 'See the figures of posts and accounts',
  'reports.read': 'See and download reports',
  'reports.manage': 'Start runs of saved reports',
  'besttimes.read': 'See the best times to post',
  'media.read': 'See pictures and videos of the library',
  'media.manage': 'Add, change and delete pictures and videos of the library',
  'approvals.read': 'See requests for approval',
  'approvals.decide': 'Approve or reject posts in your name',
  'campaigns.read': 'See campaigns',
  'campaigns.manage': 'Create, change and delete campaigns, and move their posts',
  'webhooks.read': 'See webhook endpoints and their deliveries',
  'webhooks.manage': 'Create, change and test webhook endpoints',
  'webhooks.delete': 'Delete webhook endpoints',
  'events.read': 'Read every event of the workspace: who did what, when, and how',
};

const isScope = (name: string): name is Scope => (scopes as readonly string[]).includes(name);

export interface ShownScope {
  readonly name: string;
  readonly words: string;
}

export const scopeShown = (name: string): ShownScope => ({ name, words: isScope(name) ? scopeWords[name] : name });

/** What a key of this role can do at most. */
export const scopesForRole = (role: Role): readonly ShownScope[] => scopesOf(role).map(scopeShown);

/** Beside reading, what the guides do with a key: a newcomer follows them with a key as the form offers it. */
const guided: readonly Scope[] = [
  'clients.manage',
  'accounts.connect',
  'posts.compose',
  'media.manage',
  'webhooks.manage',
];

const isTicked = (mode: Mode, scope: Scope): boolean => {
  // An auditor's key alone needs it: it shows who did what, with the names and addresses that the events have.
  if (scope === 'events.read') return false;
  return scope.endsWith('.read') || (mode === 'test' && guided.includes(scope));
};

/** The scopes that a form offers ticked: those of a live key only read, since what it publishes is public. */
export const scopesTicked = (mode: Mode, role: Role): readonly Scope[] =>
  scopesOf(role).filter((scope) => isTicked(mode, scope));

const roleWords: Readonly<Record<Role, { readonly name: string; readonly about: string }>> = {
  owner: { name: 'Owner', about: 'may do everything, and decides who else is an Owner' },
  manager: { name: 'Manager', about: 'runs clients, posts, keys and the team' },
  creator: { name: 'Creator', about: 'writes and schedules posts' },
  viewer: { name: 'Viewer', about: 'sees everything and changes nothing' },
};

export const roleShown = (role: string): { readonly value: string; readonly name: string; readonly about: string } => ({
  value: role,
  ...(roleWords[role as Role] ?? { name: role, about: '' }),
});

export const modeName = (mode: Mode): string => (mode === 'live' ? 'Live' : 'Sandbox');

const dayAndTime = lazy(
  () => new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' }),
);

/** @param at ISO 8601 */
export const when = (at: string): string => `${dayAndTime().format(new Date(at))} UTC`;

/** What to call a browser, from what it says of itself. */
export const deviceOf = (agent: string): string => {
  const has = (name: string): boolean => agent.includes(name);
  const first = (known: readonly (readonly [sign: string, name: string])[], rest: string): string =>
    known.find(([sign]) => has(sign))?.[1] ?? rest;
  const browser = first(
    [
      ['Edg', 'Edge'],
      ['OPR/', 'Opera'],
      ['Firefox/', 'Firefox'],
      ['FxiOS/', 'Firefox'],
      ['CriOS/', 'Chrome'],
      ['Chrome/', 'Chrome'],
      ['Safari/', 'Safari'],
    ],
    'A browser',
  );
  const system = first(
    [
      ['Windows', 'Windows'],
      ['iPhone', 'iPhone'],
      ['iPad', 'iPad'],
      ['Android', 'Android'],
      ['Mac OS X', 'macOS'],
      ['CrOS', 'ChromeOS'],
      ['Linux', 'Linux'],
    ],
    'an unknown system',
  );
  return `${browser} on ${system}`;
};
