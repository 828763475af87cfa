import type { CredentialStore } from '#contracts/ports/credentials.ts';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import type { InsightsSource } from '#contracts/ports/platform-insights.ts';
import type { AppSettings } from '#domain/platforms/rules.ts';
import type { Members } from '../shared/members.ts';
import { appOf, type NetworkApp } from './app.ts';
import { failureOf } from './errors.ts';
import type { KitNetwork } from './network.ts';
import type { NetworkTables } from './tables.ts';

/** A network to which accounts come by several logins, each with an app and addresses of its own: the login of an account acts for it. */

/**
 * The app by which accounts come: its own, or that of another network. That one must have the permissions without which no
 * account works, and is asked for no others. Null: the operator has none.
 */
export const appOfLogin = (
  { platform, appOf: other, oauth }: Pick<NetworkTables, 'platform' | 'appOf' | 'oauth'>,
  config: AppSettings,
): NetworkApp | null => {
  const app = appOf(other ?? platform, config);
  if (app === null || other === undefined) return app;
  const scopes = Object.keys(oauth.scopes).filter((one) => app.scopes?.includes(one) !== false);
  const lacks = Object.entries(oauth.scopes).some(([one, { needed }]) => needed !== undefined && !scopes.includes(one));
  return lacks ? null : { ...app, scopes };
};

type Each = readonly [KitNetwork, ...KitNetwork[]];

const takes =
  (secret: Members) =>
  (network: KitNetwork): boolean =>
    network.takes?.(secret) ?? true;

/**
 * The one by which the account came. Where the operator has taken its app away, or where there is no credential, the first one
 * says of the account that it needs a new consent.
 */
const chooser =
  (networks: Each, credentials: Pick<CredentialStore, 'read'>) =>
  async ({ id }: { readonly id: string }): Promise<KitNetwork> => {
    const kept = await credentials.read(id);
    return (kept === null ? undefined : networks.find(takes(kept.secret))) ?? networks[0];
  };

const cannotRemove = {
  kind: 'not_removed',
  failure: failureOf('permission', null, 'by the login of this account no program deletes a post'),
} as const;

const adapterOf = (networks: Each, of: ReturnType<typeof chooser>): PlatformAdapter => ({
  ...networks[0].adapter,
  publish: async (request, steps) => (await of(request.account)).adapter.publish(request, steps),
  reconcile: async (request, boundary, handle) =>
    (await of(request.account)).adapter.reconcile(request, boundary, handle),
  findPosts: async (request) =>
    (await of(request.account)).adapter.findPosts?.(request) ?? { kind: 'not_askable' as const },
  comment: async (request, signal) => (await of(request.account)).adapter.comment(request, signal),
  removePost: async (request, signal) =>
    (await of(request.account)).adapter.removePost?.(request, signal) ?? cannotRemove,
  canRemove: async (account) => (await of(account)).adapter.removePost !== undefined,
});

const sourceOf = (networks: Each, of: ReturnType<typeof chooser>): InsightsSource => ({
  ...networks[0].source,
  async *fetchPostInsights(platform, account, posts, signal) {
    yield* (await of(account)).source.fetchPostInsights(platform, account, posts, signal);
  },
  fetchAccountInsights: async (platform, account, signal) =>
    (await of(account)).source.fetchAccountInsights(platform, account, signal),
});

export const joined = (networks: Each, credentials: Pick<CredentialStore, 'read'>): KitNetwork => {
  const [first, ...others] = networks;
  if (others.length === 0) return first;
  const of = chooser(networks, credentials);
  // The other logins are of apps that call elsewhere.
  const { inbox } = first;
  const bySecret = (secret: Members): KitNetwork => networks.find(takes(secret)) ?? first;
  return {
    adapter: adapterOf(networks, of),
    source: sourceOf(networks, of),
    connectors: networks.flatMap(({ connectors }) => connectors),
    refresher: async (former, signal, owner) =>
      bySecret(former.secret).refresher?.(former, signal, owner) ?? {
        ...({ kind: 'refused', reason: 'the network renews no token' } as const),
      },
    refreshWindowMs: Math.max(...networks.map(({ refreshWindowMs }) => refreshWindowMs ?? 0)),
    // A login without such a call has nothing to take back.
    revoker: async (credential, accountId, signal) =>
      bySecret(credential.secret).revoker?.(credential, accountId, signal) ?? 'revoked',
    ...(inbox === undefined ? {} : { inbox }),
  };
};
