import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { EventStoreError } from '#contracts/ports/event-store.ts';
import { externalRefIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createIdempotently } from '#runtime/eventing/idempotency.ts';
import {
  claimExternalRef,
  loadRef,
  type RefClaimant,
  releaseExternalRef,
  takenExternalRef,
} from '#services/workflows/posts/external-refs.ts';
import { claimantOf } from '#test/support/claiming.ts';
import { MemoryEventLog, MemoryEventStore } from '#test/support/event-store/memory.ts';
import { Died, mortal } from '#test/support/mortal-store.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { postBody } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const clientId = randomUUID();
const createdBy = { type: 'service', id: 'test' };
const bodyOf = (externalRef: string | null) => postBody(externalRef === null ? {} : { externalRef });

/** Creates a draft with this reference, as POST /posts does. */
const create = (by: RefClaimant, key: string, externalRef: string | null) =>
  createIdempotently({
    ...{ store: by.store, context: by.context, positions: by.positions },
    ...{ operation: 'createPost', key, decider: post },
    command: async () => ({ type: 'Draft', clientId, createdBy, body: bodyOf(externalRef) }) as const,
    reserve: async (postId) => {
      if (externalRef !== null) await claimExternalRef(by, { clientId, externalRef, postId });
    },
  });

/** Gives a draft another reference, as PATCH /posts/{id} does. */
const change = async (by: RefClaimant, postId: string, externalRef: string | null): Promise<void> => {
  for (;;) {
    const loaded = await by.store.load(post, postId);
    if (loaded.state.status !== 'draft') return;
    const had = loaded.state.body.externalRef;
    if (had === externalRef) return;
    if (externalRef !== null) await claimExternalRef(by, { clientId, externalRef, postId });
    const former = had === undefined ? null : { clientId, externalRef: had, postId };
    const claim = former === null ? undefined : await loadRef(by, former);
    try {
      const command = { type: 'ReplaceDraft', body: bodyOf(externalRef) } as const;
      await execute(by.store, post, postId, command, by.context, { loaded, redecide: false });
    } catch (error) {
      if (error instanceof EventStoreError && error.code === 'wrong_expected_revision') continue;
      throw error;
    }
    if (former !== null) await releaseExternalRef(by, former, claim);
    return;
  }
};

/** Lets whoever else is under way go on. */
const others = () => new Promise<void>((done) => setImmediate(done));

const world = () => {
  const log = new MemoryEventLog();
  const codec = new EventCodec(new TestKeys());
  const workspaceId = randomUUID();
  const time = { now: Date.parse('2026-01-31T08:00:00.000Z') };
  const bare = new DomainStore(new MemoryEventStore(log), codec, 12);
  const claimant = (store: DomainStore, key: string = randomUUID(), fingerprint = 'one'): RefClaimant => ({
    ...claimantOf({ store, workspaceId, time, key, fingerprint, waited: () => others() }),
    sees: async () => true,
  });
  /** References that posts have now, sorted. */
  const borne = async (): Promise<readonly string[]> => {
    const streams = new Set(log.all.map(({ stream }) => stream).filter((stream) => stream.startsWith('post-')));
    const found: string[] = [];
    for (const stream of streams) {
      const { state } = await bare.load(post, stream.slice('post-'.length));
      if (state.status === 'draft' && state.body.externalRef !== undefined) found.push(state.body.externalRef);
    }
    return found.sort();
  };
  return { log, codec, time, bare, claimant, borne };
};

suite('the claim on an externalRef', (t) => {
  t('a taken reference is refused with the post that has it, also where it was claimed long ago', async () => {
    const { time, bare, claimant } = world();
    const { id } = await create(claimant(bare), 'one', 'A');
    for (const ms of [0, 60_000]) {
      time.now += ms;
      await assert.rejects(create(claimant(bare), 'two', 'A'), { code: 'already_exists', extra: { postId: id } });
    }
    const saying = (sees: boolean) =>
      create({ ...claimant(bare), sees: async () => sees }, 'two', 'A').then(
        () => null,
        ({ code, message, extra }) => [code, message, extra?.postId],
      );
    assert.deepEqual(await saying(true), ['already_exists', `The post ${id} of the client has this externalRef.`, id]);
    // Who may not know of the post is not told which one it is.
    const unnamed = ['already_exists', 'Another post of the client has this externalRef.', undefined];
    assert.deepEqual(await saying(false), unnamed);
    // Of another client it is another reference.
    await claimExternalRef(claimant(bare), { clientId: randomUUID(), externalRef: 'A', postId: randomUUID() });
    await claimExternalRef(claimant(bare), { clientId, externalRef: 'a', postId: randomUUID() });
  });

  t(
    'a claim whose post was never created is waited for, then broken; the first key goes on under another id',
    async () => {
      const { log, codec, time, bare, claimant, borne } = world();
      const dying = new DomainStore(
        mortal(new MemoryEventStore(log), 1, async () => undefined),
        codec,
        12,
      );
      await assert.rejects(create(claimant(dying, 'one'), 'one', 'A'), Died);
      const began = time.now;
      const taken = await create(claimant(bare, 'two'), 'two', 'A');
      assert.ok(time.now - began > 10_000 && time.now - began < 11_000, `waited ${time.now - began} ms`);
      await assert.rejects(create(claimant(bare, 'one'), 'one', 'A'), { code: 'already_exists' });
      // A refused call may be corrected under the same key, and its repeat finds the post.
      const made = await create(claimant(bare, 'one', 'other'), 'one', 'B');
      const again = await create(claimant(bare, 'one', 'other'), 'one', 'B');
      assert.deepEqual([made.replayed, again.replayed, again.id], [false, true, made.id]);
      assert.notEqual(made.id, taken.id);
      assert.deepEqual(await borne(), ['A', 'B']);
    },
  );

  t('who only asks is refused what a post has, and not what is free or under way', async () => {
    const { bare, claimant } = world();
    const asked = (externalRef: string) => takenExternalRef(claimant(bare), { clientId, externalRef });
    const { id } = await create(claimant(bare), 'one', 'A');
    assert.equal((await asked('A'))?.message, `The post ${id} of the client has this externalRef.`);
    assert.equal(await asked('B'), null);
    await claimExternalRef(claimant(bare), { clientId, externalRef: 'B', postId: randomUUID() });
    assert.equal(await asked('B'), null);
    await change(claimant(bare), id, 'C');
    assert.equal(await asked('A'), null);
  });

  t('a claim that was made again is not released as it was before, and another fault is told', async () => {
    const { log, codec, time, bare, claimant } = world();
    const ref = { clientId, externalRef: 'A', postId: randomUUID() };
    const statusOf = async () => (await loadRef(claimant(bare), ref)).state.status;
    await claimExternalRef(claimant(bare), ref);
    const former = await loadRef(claimant(bare), ref);
    time.now += 1;
    await claimExternalRef(claimant(bare), ref);
    await releaseExternalRef(claimant(bare), ref, former);
    assert.equal(await statusOf(), 'claimed');
    const dead = new DomainStore(
      mortal(new MemoryEventStore(log), 0, async () => undefined),
      codec,
      12,
    );
    await assert.rejects(releaseExternalRef(claimant(dead), ref, await loadRef(claimant(bare), ref)), Died);
    await releaseExternalRef(claimant(bare), ref);
    assert.equal(await statusOf(), 'free');
  });

  t('a claim is given up once it has gone on changing for too long', async () => {
    const { bare, claimant } = world();
    await create(claimant(bare), 'one', 'A').then(({ id }) => change(claimant(bare), id, 'B'));
    let waits = 0;
    const wait = async () => {
      waits += 1;
    };
    const stuck = { ...claimant(bare), clock: () => 0, wait };
    await claimExternalRef(claimant(bare), { clientId, externalRef: 'A', postId: randomUUID() });
    await assert.rejects(claimExternalRef(stuck, { clientId, externalRef: 'A', postId: randomUUID() }), {
      name: 'Unavailable',
      message: 'Other callers change the claim on this externalRef all the time.',
    });
    assert.equal(waits, 500);
  });

  t('a post without a reference appends nothing but itself', async () => {
    const { log, bare, claimant, borne } = world();
    const { id } = await create(claimant(bare), 'one', null);
    assert.deepEqual(
      log.all.map(({ stream }) => stream),
      [`post-${id}`],
    );
    await change(claimant(bare), id, 'A');
    await change(claimant(bare), id, null);
    assert.deepEqual(await borne(), []);
    const claims = await bare.readStream(
      `externalref-${externalRefIdOf(claimant(bare).context.workspaceId, clientId, 'A')}`,
    );
    assert.deepEqual(
      claims.map(({ type }) => type),
      ['ExternalRefClaimed', 'ExternalRefReleased'],
    );
  });

  t('with any races and crashes no two posts have one reference, and a free reference can be taken', async () => {
    const random = seeded('references');
    for (let round = 0; round < 600; round += 1) {
      const { log, codec, time, bare, claimant, borne } = world();
      const refs = ['A', 'b', 'C'];
      const ids = new Set<string>();
      const act = async (): Promise<void> => {
        const pause = async () => {
          for (let at = random.int(0, 12); at > 0; at -= 1) await Promise.resolve();
          // Time passes for everybody; sometimes long enough for a claim to lapse while its caller is slow.
          time.now += random.next() < 0.12 ? 11_000 : 1;
        };
        const lives = random.next() < 0.25 ? random.int(0, 3) : 100;
        const store = new DomainStore(mortal(new MemoryEventStore(log), lives, pause), codec, 12);
        const ref = random.next() < 0.1 ? null : random.pick(refs);
        const key = random.pick(['k1', 'k2', 'k3', 'k4']);
        const by = claimant(store, key, String(ref));
        const known = [...ids];
        try {
          if (known.length === 0 || random.next() < 0.4) ids.add((await create(by, key, ref)).id);
          else await change(by, random.pick(known), ref);
        } catch (error) {
          const code = (error as { code?: string }).code ?? '';
          const expected = ['already_exists', 'idempotency_key_reused'].includes(code);
          if (!(error instanceof Died) && !expected) throw error;
        }
      };
      for (let wave = 0; wave < 3; wave += 1) await Promise.all(Array.from({ length: 7 }, act));
      const now = await borne();
      assert.deepEqual(now, [...new Set(now)], `round ${round}`);
      // Nothing is stuck for longer than a lapse: a reference that no post has can be taken.
      time.now += 20_000;
      for (const ref of refs.filter((one) => !now.includes(one))) await create(claimant(bare), randomUUID(), ref);
      assert.deepEqual(await borne(), refs.toSorted(), `round ${round}, afterwards`);
    }
  });
});
