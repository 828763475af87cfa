/** The behaviour of every store of network credentials, shown with two of them as two processes would hold them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Credential, CredentialOwner, CredentialStore, NewCredential, Refresh } from './credentials.ts';

export interface CredentialHarness {
  readonly store: CredentialStore;
  /** Another process on the same credentials. */
  readonly other: CredentialStore;
  /** Destroys the data key of a client, and no row. */
  destroyKey(clientId: string): Promise<void>;
  close(): Promise<void>;
}

export interface Cases {
  (name: string, run: () => Promise<void>): void;
  before(run: () => Promise<void>): void;
  after(run: () => Promise<void>): void;
}

const never = new AbortController().signal;

export const ownerOf = (over: Partial<CredentialOwner> = {}): CredentialOwner => ({
  ...{ accountId: randomUUID(), workspaceId: randomUUID(), clientId: randomUUID(), platform: 'x' },
  ...over,
});

/** With a secret that no other test has. */
export const credentialOf = (over: Partial<NewCredential> = {}): NewCredential => ({
  secret: { accessToken: `access-${randomUUID()}`, refreshToken: `refresh-${randomUUID()}` },
  expiresAt: '2027-01-01T00:00:00.000Z',
  ...over,
});

const refreshed = (credential: NewCredential): Refresh => ({ kind: 'refreshed', credential });

/** A network that answers when the test lets it, and counts its calls. */
export const slowNetwork = () => {
  let answer: (answer: Refresh) => void = () => undefined;
  let asked: (former: Credential) => void = () => undefined;
  const isAsked = new Promise<Credential>((resolve) => {
    asked = resolve;
  });
  const answered = new Promise<Refresh>((resolve) => {
    answer = resolve;
  });
  const network = {
    calls: 0,
    isAsked,
    answer: (given: Refresh) => answer(given),
    ask: (former: Credential): Promise<Refresh> => {
      network.calls += 1;
      asked(former);
      return answered;
    },
  };
  return network;
};

export const credentialCases = (t: Cases, start: () => Promise<CredentialHarness>): void => {
  let harness: CredentialHarness;
  let store: CredentialStore;
  let other: CredentialStore;
  t.before(async () => {
    harness = await start();
    ({ store, other } = harness);
  });
  t.after(() => harness?.close());
  const kept = async (over: Partial<NewCredential> = {}, of: Partial<CredentialOwner> = {}) => {
    const owner = ownerOf(of);
    const credential = credentialOf(over);
    const version = await store.keep(owner, credential);
    assert.equal(version, 1);
    return { owner, credential, id: owner.accountId };
  };
  const neverAsked = (): Promise<Refresh> => assert.fail('the network was asked');
  const endingIds = async (owner: CredentialOwner, before = '2027-06-01T00:00:00Z'): Promise<readonly string[]> =>
    (await store.ending(owner.platform, before, 10_000))
      .filter((one) => one.owner.workspaceId === owner.workspaceId)
      .map((one) => one.owner.accountId);

  t('what is kept is read back by every process, version by version', async () => {
    const { owner, credential, id } = await kept();
    assert.deepEqual(await other.read(id), { version: 1, ...credential });
    const next = credentialOf({ expiresAt: null });
    assert.equal(await other.keep(owner, next), 2);
    assert.deepEqual(await store.read(id), { version: 2, ...next });
    assert.equal(await store.read(randomUUID()), null);
  });

  t('twenty that keep at once get a version each, and the last one is read', async () => {
    const owner = ownerOf();
    const all = Array.from({ length: 20 }, () => credentialOf());
    const versions = await Promise.all(all.map((one, at) => (at % 2 === 0 ? store : other).keep(owner, one)));
    assert.deepEqual(
      [...versions].sort((a, b) => Number(a) - Number(b)),
      all.map((_, at) => at + 1),
    );
    assert.deepEqual(await store.read(owner.accountId), { version: 20, ...all[versions.indexOf(20)] });
  });

  t('a refresh stores the new pair before it resolves', async () => {
    const { credential, id } = await kept();
    const next = credentialOf();
    const asked: Credential[] = [];
    const ask = async (former: Credential): Promise<Refresh> => {
      asked.push(former);
      return refreshed(next);
    };
    const result = await store.refresh(id, 1, ask, never);
    assert.deepEqual(asked, [{ version: 1, ...credential }]);
    assert.deepEqual(result, { kind: 'current', credential: { version: 2, ...next } });
    assert.deepEqual(await other.read(id), { version: 2, ...next });
  });

  t('a member that the network left out keeps its former value', async () => {
    const { credential, id } = await kept();
    const next = { secret: { accessToken: 'another' }, expiresAt: '2027-01-02T00:00:00.000Z' };
    await store.refresh(id, 1, async () => refreshed(next), never);
    const secret = { ...credential.secret, accessToken: 'another' };
    assert.deepEqual(await other.read(id), { version: 2, secret, expiresAt: next.expiresAt });
    const undefinedRefresh = { accessToken: 'third', refreshToken: undefined } as unknown as NewCredential['secret'];
    await store.refresh(id, 2, async () => refreshed({ ...next, secret: undefinedRefresh }), never);
    assert.equal((await other.read(id))?.secret.refreshToken, credential.secret.refreshToken);
  });

  t('a caller that saw another version gets the present one, without a call', async () => {
    const { owner, id } = await kept();
    const next = credentialOf();
    await store.keep(owner, next);
    const result = await other.refresh(id, 1, neverAsked, never);
    assert.deepEqual(result, { kind: 'current', credential: { version: 2, ...next } });
    assert.deepEqual(await store.refresh(randomUUID(), 1, neverAsked, never), { kind: 'missing' });
  });

  t('fifty refreshes at once in two processes ask the network once, and all get the same pair', async () => {
    const { id } = await kept();
    const network = slowNetwork();
    const all = Array.from({ length: 50 }, (_, at) =>
      (at % 2 === 0 ? store : other).refresh(id, 1, network.ask, never),
    );
    await network.isAsked;
    const next = credentialOf();
    network.answer(refreshed(next));
    for (const result of await Promise.all(all)) {
      assert.deepEqual(result, { kind: 'current', credential: { version: 2, ...next } });
    }
    assert.equal(network.calls, 1);
  });

  t('a consent during a refresh wins, and the late answer is not stored', async () => {
    const { owner, id } = await kept();
    const network = slowNetwork();
    const late = store.refresh(id, 1, network.ask, never);
    await network.isAsked;
    const consent = credentialOf();
    assert.equal(await other.keep(owner, consent), 2);
    network.answer(refreshed(credentialOf()));
    const current = { version: 2, ...consent };
    assert.deepEqual(await late, { kind: 'current', credential: current });
    assert.deepEqual(await store.read(id), current);
  });

  t('a refusal of a credential that a consent replaced is no lapse', async () => {
    const { owner, id } = await kept();
    const network = slowNetwork();
    const late = store.refresh(id, 1, network.ask, never);
    await network.isAsked;
    const consent = credentialOf();
    await other.keep(owner, consent);
    network.answer({ kind: 'refused', reason: 'invalid_grant' });
    assert.deepEqual(await late, { kind: 'current', credential: { version: 2, ...consent } });
  });

  t('a destruction during a refresh wins, and the late answer is not stored', async () => {
    const { owner, id } = await kept();
    for (const isKeptAgain of [false, true]) {
      if (isKeptAgain) await store.keep(owner, credentialOf());
      const network = slowNetwork();
      const late = store.refresh(id, 1, network.ask, never);
      await network.isAsked;
      await other.destroy(id);
      await other.destroy(id);
      const consent = credentialOf();
      if (isKeptAgain) assert.equal(await other.keep(owner, consent), 1);
      network.answer(refreshed(credentialOf()));
      const { kind } = await late;
      assert.equal(kind, isKeptAgain ? 'unavailable' : 'missing');
      assert.deepEqual(await store.read(id), isKeptAgain ? { version: 1, ...consent } : null);
    }
  });

  t('unavailable: the former pair stays, those who waited hear it too, and the next call asks again', async () => {
    const { credential, id } = await kept();
    const network = slowNetwork();
    const first = store.refresh(id, 1, network.ask, never);
    await network.isAsked;
    const second = other.refresh(id, 1, neverAsked, never);
    // Twice as long as the first look of the second one.
    await new Promise((resolve) => setTimeout(resolve, 60));
    network.answer({ kind: 'unavailable', reason: 'the network answered 503' });
    assert.deepEqual(await first, { kind: 'unavailable', reason: 'the network answered 503' });
    assert.equal((await second).kind, 'unavailable');
    assert.deepEqual(await other.read(id), { version: 1, ...credential });
    const next = credentialOf();
    const { kind } = await other.refresh(id, 1, async () => refreshed(next), never);
    assert.equal(kind, 'current');
  });

  t('a refusal lapses the account once and for all, until the next consent', async () => {
    const { owner, id } = await kept();
    const refused: Refresh = { kind: 'refused', reason: 'invalid_grant: revoked by the user' };
    const lapsed = { kind: 'lapsed', version: 1, reason: refused.reason, isLost: false } as const;
    assert.deepEqual(await store.refresh(id, 1, async () => refused, never), lapsed);
    assert.deepEqual(await other.refresh(id, 1, neverAsked, never), lapsed);
    assert.equal(await store.keep(owner, credentialOf()), 2);
    const next = credentialOf();
    const { kind } = await store.refresh(id, 2, async () => refreshed(next), never);
    assert.equal(kind, 'current');
  });

  t('a refusal behind an answer that never came says that it was lost', async () => {
    const { id } = await kept();
    const silent: Refresh = { kind: 'unavailable', reason: 'no answer', isSilent: true };
    await store.refresh(id, 1, async () => silent, never);
    await store.refresh(id, 1, async () => ({ kind: 'unavailable', reason: '503' }), never);
    const result = await other.refresh(id, 1, async () => ({ kind: 'refused', reason: 'invalid_grant' }), never);
    assert.ok(result.kind === 'lapsed' && result.isLost);
    assert.match(result.reason, /answer to a refresh was lost.*invalid_grant$/);
    assert.deepEqual(await store.refresh(id, 1, neverAsked, never), result);
  });

  t('a success behind an answer that never came leaves nothing lost', async () => {
    const { id } = await kept();
    const silent: Refresh = { kind: 'unavailable', reason: 'no answer', isSilent: true };
    await store.refresh(id, 1, async () => silent, never);
    await store.refresh(id, 1, async () => refreshed(credentialOf()), never);
    const result = await other.refresh(id, 2, async () => ({ kind: 'refused', reason: 'invalid_grant' }), never);
    assert.ok(result.kind === 'lapsed' && !result.isLost);
  });

  t('an adapter that throws ends its refresh, and its answer counts as lost', async () => {
    const { id } = await kept();
    const broken = async (): Promise<Refresh> => {
      throw new Error('a defect');
    };
    await assert.rejects(store.refresh(id, 1, broken, never), /a defect/);
    const result = await other.refresh(id, 1, async () => ({ kind: 'refused', reason: 'invalid_grant' }), never);
    assert.ok(result.kind === 'lapsed' && result.isLost);
  });

  t('a waiting caller stops at its signal; a call under way still gets its answer stored', async () => {
    const { id } = await kept();
    const network = slowNetwork();
    const stopped = new AbortController();
    const first = store.refresh(id, 1, network.ask, stopped.signal);
    await network.isAsked;
    const waiting = other.refresh(id, 1, neverAsked, stopped.signal);
    stopped.abort();
    assert.equal((await waiting).kind, 'unavailable');
    const next = credentialOf();
    network.answer(refreshed(next));
    assert.deepEqual(await first, { kind: 'current', credential: { version: 2, ...next } });
    assert.equal((await store.refresh(id, 2, neverAsked, stopped.signal)).kind, 'unavailable');
  });

  t('the credentials of an erased client are gone, and none is kept again', async () => {
    const { owner, id } = await kept();
    const { owner: second } = await kept({}, { clientId: owner.clientId });
    const { owner: stranger } = await kept();
    await store.destroyOfClient(owner.clientId);
    await store.destroyOfClient(owner.clientId);
    assert.equal(await other.read(id), null);
    assert.equal(await other.read(second.accountId), null);
    assert.equal((await other.read(stranger.accountId))?.version, 1);
    await harness.destroyKey(owner.clientId);
    assert.equal(await store.keep(owner, credentialOf()), null);
    assert.equal(await store.read(id), null);
  });

  t('a refresh during the erasure of its client stores nothing', async () => {
    const { owner, id } = await kept();
    const network = slowNetwork();
    const late = store.refresh(id, 1, network.ask, never);
    await network.isAsked;
    await harness.destroyKey(owner.clientId);
    await store.destroyOfClient(owner.clientId);
    network.answer(refreshed(credentialOf()));
    assert.deepEqual(await late, { kind: 'missing' });
    assert.deepEqual(await endingIds(owner), []);
  });

  t(
    'of accounts that share a grant, whichever leaves last is the last, and no other network or grant counts',
    async () => {
      const grant = `person-${randomUUID()}`;
      const [one, two, three] = [await kept({ grant }), await kept({ grant }), await kept({ grant })];
      const elsewhere = await kept({ grant }, { platform: 'facebook' });
      const another = await kept({ grant: `person-${randomUUID()}` });
      const alone = await kept();
      for (const { id } of [elsewhere, another, alone]) assert.equal(await store.leave(id, 1), 'last');
      assert.equal(await store.leave(one.id, 1), 'left');
      assert.equal(await other.read(one.id), null);
      assert.equal(await store.leave(one.id, 1), 'left', 'a repeat does no harm');
      const answers = await Promise.all([two, three].map(({ id }, at) => (at === 0 ? store : other).leave(id, 1)));
      assert.deepEqual(answers.toSorted(), ['last', 'left']);
      const last = answers[0] === 'last' ? two : three;
      assert.notEqual(await store.read(last.id), null, 'the network is asked first');
      assert.equal(await other.leave(last.id, 1), 'last', 'and again where nobody heard its answer');
    },
  );

  t('a page of facebook and an account of instagram share the consent of their person', async () => {
    const grant = `person-${randomUUID()}`;
    const page = await kept({ grant }, { platform: 'facebook' });
    const behind = await kept({ grant }, { platform: 'instagram' });
    const elsewhere = await kept({ grant }, { platform: 'threads' });
    assert.equal(await store.leave(elsewhere.id, 1), 'last');
    assert.equal(await store.leave(page.id, 1), 'left');
    assert.equal(await store.leave(behind.id, 1), 'last');
  });

  t('a grant stays through a refresh, a new consent names its own, and what it gave is left alone', async () => {
    const grant = `person-${randomUUID()}`;
    const [one, two] = [await kept({ grant }), await kept({ grant })];
    const next = await store.refresh(one.id, 1, async () => refreshed(credentialOf()), never);
    assert.equal(next.kind, 'current');
    assert.equal(await store.leave(two.id, 1), 'left');
    assert.equal(await store.leave(one.id, 1), 'left', 'another version is kept');
    assert.equal((await store.read(one.id))?.version, 2);
    await kept({ grant });
    assert.equal(await store.keep(one.owner, credentialOf()), 3);
    assert.equal(await store.leave(one.id, 3), 'last', 'this consent is its own');
  });

  t('ending: by network and time, the earliest of each workspace before the second of any', async () => {
    const at = (minute: number) => ({ expiresAt: `2026-01-01T00:0${minute}:00.000Z` });
    const [busy, small] = [randomUUID(), randomUUID()];
    const of = (workspaceId: string) => ({ workspaceId, platform: 'youtube' }) as const;
    const [b1, b2, b3] = [await kept(at(1), of(busy)), await kept(at(2), of(busy)), await kept(at(3), of(busy))];
    const s4 = await kept(at(4), of(small));
    await kept(at(5), of(small));
    await kept({ expiresAt: null }, of(small));
    await kept(at(1), { workspaceId: small, platform: 'threads' });
    const found = await other.ending('youtube', '2026-01-01T00:05:00Z', 10);
    assert.deepEqual(
      found.map((one) => one.owner.accountId),
      [b1.id, s4.id, b2.id, b3.id],
    );
    assert.deepEqual(found[0], { owner: b1.owner, version: 1, ...at(1) });
    assert.equal((await other.ending('youtube', '2026-01-01T00:05:00Z', 2)).length, 2);
  });

  t('ending leaves out what is refreshed now, what was unavailable, and a lapse that was acknowledged', async () => {
    const { owner, id } = await kept();
    assert.deepEqual(await endingIds(owner), [id]);
    const network = slowNetwork();
    const refresh = store.refresh(id, 1, network.ask, never);
    await network.isAsked;
    assert.deepEqual(await endingIds(owner), []);
    network.answer({ kind: 'unavailable', reason: '503' });
    await refresh;
    assert.deepEqual(await endingIds(owner), []);
    await store.refresh(id, 1, async () => ({ kind: 'refused', reason: 'invalid_grant' }), never);
    assert.deepEqual(await endingIds(owner), [id]);
    await store.acknowledgeLapse(id, 2);
    assert.deepEqual(await endingIds(owner), [id], 'the lapse of another version');
    await store.acknowledgeLapse(id, 1);
    assert.deepEqual(await endingIds(owner), []);
    await store.keep(owner, credentialOf());
    assert.deepEqual(await endingIds(owner), [id]);
  });

  t('a reason repeats no secret', async () => {
    const { credential, id } = await kept();
    const { accessToken = '', refreshToken = '' } = credential.secret;
    const reason = `no such token: ${refreshToken} (${accessToken})`;
    const shown = 'no such token: [removed] ([removed])';
    const first = await store.refresh(id, 1, async () => ({ kind: 'unavailable', reason }), never);
    assert.deepEqual(first, { kind: 'unavailable', reason: shown });
    const second = await store.refresh(id, 1, async () => ({ kind: 'refused', reason }), never);
    assert.ok(second.kind === 'lapsed' && second.reason === shown);
  });
};
