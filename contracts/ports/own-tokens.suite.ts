/**
 * The behaviour of every network whose login has accounts with a token of their own: pages, organizations. An adapter's test
 * passes a harness: a login with two such accounts on a network that ends tokens when the test says so.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Platform } from '#schemas/common.ts';
import type { ConsentConnector, KeptConsent, OfferedAccount } from './connector.ts';
import type { CredentialOwner, CredentialStore, Refreshed, Refresher } from './credentials.ts';
import type { Cases } from './platform.suite.ts';

export interface OwnTokensHarness {
  readonly platform: Platform;
  readonly connector: ConsentConnector;
  readonly refresher: Refresher;
  readonly store: CredentialStore;
  /** What a guest brings back who consented to a login with two accounts. */
  readonly returned: { readonly answer: ReadonlyMap<string, string>; readonly kept: KeptConsent };
  /** Whether the network takes this token for the account. */
  takes(externalId: string, token: unknown): boolean;
  /** The network ends the account's own token. */
  endOwn(externalId: string): void;
  /** The network answers no request of a token until `endOwn`. */
  fail(): void;
  /** The network ends the login. */
  endLogin(): void;
  /** How often it was asked for a token of the account, by the token of the login. */
  asked(externalId: string): number;
  close(): Promise<void>;
}

const never = new AbortController().signal;

interface Kept {
  readonly owner: CredentialOwner;
  readonly externalId: string;
}

export function ownTokensSuite(t: Cases, start: () => Promise<OwnTokensHarness>): void {
  const connected = async (harness: OwnTokensHarness): Promise<readonly [Kept, Kept]> => {
    const { connector, platform, store, returned } = harness;
    const asked = { ...returned, redirectUri: 'https://postline.test/connect/callback', workspaceId: randomUUID() };
    const finished = await connector.finish(asked, never);
    assert.ok(finished.kind === 'accounts', JSON.stringify(finished));
    const free = finished.accounts.filter(({ obstacle }) => obstacle === undefined);
    const keep = async ({ profile: { externalId }, credential }: OfferedAccount): Promise<Kept> => {
      const owner = { accountId: randomUUID(), workspaceId: asked.workspaceId, clientId: randomUUID(), platform };
      assert.equal(await store.keep(owner, credential), 1);
      return { owner, externalId };
    };
    const [one, other] = await Promise.all(free.map(keep));
    assert.ok(one !== undefined && other !== undefined, 'a login of two accounts');
    return [one, other];
  };
  const tokenOf = async ({ store }: OwnTokensHarness, { owner }: Kept): Promise<unknown> =>
    (await store.read(owner.accountId))?.secret.accessToken;
  const renew = ({ store, refresher }: OwnTokensHarness, { owner }: Kept, seen: number): Promise<Refreshed> =>
    store.refresh(owner.accountId, seen, (former, signal) => refresher(former, signal, owner), never);
  const within = async (run: (harness: OwnTokensHarness, one: Kept, other: Kept) => Promise<void>): Promise<void> => {
    const harness = await start();
    try {
      await run(harness, ...(await connected(harness)));
    } finally {
      await harness.close();
    }
  };

  t('each account of a login is kept with a token of its own, which the network takes for that account alone', () =>
    within(async (harness, one, other) => {
      const [first, second] = [await tokenOf(harness, one), await tokenOf(harness, other)];
      assert.deepEqual([harness.takes(one.externalId, first), harness.takes(other.externalId, second)], [true, true]);
      assert.deepEqual([harness.takes(one.externalId, second), harness.takes(other.externalId, first)], [false, false]);
    }),
  );

  t('a token that the network ended is minted anew by that of the login, once for all who met it', () =>
    within(async (harness, one, other) => {
      const second = await tokenOf(harness, other);
      harness.endOwn(one.externalId);
      assert.equal(harness.takes(one.externalId, await tokenOf(harness, one)), false);
      const renewed = await Promise.all([1, 2, 3].map(() => renew(harness, one, 1)));
      for (const answer of renewed) {
        assert.ok(answer.kind === 'current', JSON.stringify(answer));
        assert.equal(answer.credential.version, 2);
        assert.ok(harness.takes(one.externalId, answer.credential.secret.accessToken));
      }
      assert.deepEqual([harness.asked(one.externalId), harness.asked(other.externalId)], [1, 0]);
      assert.equal(await tokenOf(harness, other), second, 'nobody asked for the token of the other account');
      // What the login gave is kept through it: the next one is minted too.
      harness.endOwn(one.externalId);
      assert.equal((await renew(harness, one, 2)).kind, 'current');
      assert.ok(harness.takes(one.externalId, await tokenOf(harness, one)));
    }),
  );

  t('without an answer nothing ends, and the next call mints', () =>
    within(async (harness, one) => {
      const former = await tokenOf(harness, one);
      harness.fail();
      assert.equal((await renew(harness, one, 1)).kind, 'unavailable');
      assert.equal(await tokenOf(harness, one), former);
      harness.endOwn(one.externalId);
      assert.equal((await renew(harness, one, 1)).kind, 'current');
      assert.ok(harness.takes(one.externalId, await tokenOf(harness, one)));
    }),
  );

  t('a login that ended lapses the account that needs it, and the reason has no token', () =>
    within(async (harness, one, other) => {
      const secrets = Object.values((await harness.store.read(one.owner.accountId))?.secret ?? {});
      harness.endLogin();
      const ended = await renew(harness, one, 1);
      assert.ok(ended.kind === 'lapsed', JSON.stringify(ended));
      assert.equal(ended.isLost, false, 'a mint replaces nothing: no answer of one can be missing');
      for (const secret of secrets) if (typeof secret === 'string') assert.ok(!ended.reason.includes(secret));
      assert.ok(harness.takes(other.externalId, await tokenOf(harness, other)), 'the other account has its own');
    }),
  );
}
