import { birthOf } from '#domain/decider.ts';
import { keyedIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { type CommandContext, foldEvents, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { createIdempotently, fingerprintOf, keyHmacOf } from '#runtime/eventing/idempotency.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import type { BodyNotes } from '#schemas/http/clean.ts';
import type { Warning } from '#schemas/http/common.ts';
import { PostBulk, type PostBulkItem, PostBulkResult } from '#schemas/http/post-bulk.ts';
import type { Entry } from '../call/entries.ts';
import { type Call, operation, type Pieces } from '../call/operation.ts';
import { type ItemProblem, itemProblem, problemBody } from '../call/problems.ts';
import { answerPost, PostWarnings } from './answers.ts';
import { Reads } from './checks.ts';
import { composed } from './create.ts';
import { bulkExample, postsTag } from './examples.ts';
import { claimRefOf } from './external-ref.ts';
import { fanOutOrLeave } from './load.ts';
import { reservePlan } from './quota.ts';

/**
 * Many posts in one call. Each is created under a key of its own, which follows from the call's key and its place, so
 * that a repeat finds what was created and creates the rest. Only the caller's repeat resumes a call that was cut off.
 */

/** Posts under way at once: they share the store's group commits, and other callers keep their part of it. */
const width = 4;

interface Accepted {
  /** Null for an entry that did not fit its schema. */
  readonly postIds: readonly (string | null)[];
}

type Outcome = { readonly postId: string } | { readonly problem: ItemProblem };

interface Finished {
  /** Of the call that finished: the problems of its entries name it. */
  readonly correlationId: string;
  readonly outcomes: readonly Outcome[];
}

/** An entry that fits its schema. */
interface Item {
  readonly index: number;
  readonly sent: Omit<PostBulkItem, 'idempotencyKey'>;
  readonly notes: BodyNotes;
  readonly warned: PostWarnings;
  readonly operation: string;
  readonly key: string;
  readonly postId: string;
}

/** An entry with a key of its own is the same post as that of POST /posts under this key. */
const itemsOf = (call: Call): readonly (Item | null)[] => {
  const shared = call.key ?? uuidv7();
  return (call.entries as readonly Entry<PostBulkItem>[]).map((entry, index) => {
    if ('refusal' in entry) return null;
    const { idempotencyKey, ...sent } = entry.body;
    const named = idempotencyKey === undefined;
    const operation = named ? 'bulkCreatePosts' : 'createPost';
    const key = named ? `${shared}\n${index}` : idempotencyKey;
    const about = { notes: entry.notes, warned: new PostWarnings(call) };
    return { index, sent, ...about, operation, key, postId: keyedIdOf(call.workspaceId, operation, key) };
  });
};

const createPosts = async (call: Call): Promise<Pieces> => {
  const items = itemsOf(call);
  await call.charge(items.length - 1);
  const created = new Map<string, readonly DecodedEvent[]>();
  const { result, replayed } = await call.once(
    async (): Promise<Accepted> => ({ postIds: items.map((one) => one?.postId ?? null) }),
    async (_accepted, context): Promise<Finished> => {
      const outcomes = await createAll(call, items, context, created);
      return { correlationId: call.correlationId, outcomes };
    },
  );
  const births = await birthsOf(call, result, created);
  return { ...rendered(call, result, births), replayed, ...(await warningsOf(items, result, births, replayed)) };
};

/** Of each entry: what the answer to POST /posts would warn of, with pointers into the body of this call. */
const warningsOf = async (
  items: readonly (Item | null)[],
  { outcomes }: Finished,
  births: ReadonlyMap<string, readonly DecodedEvent[]>,
  replayed: boolean,
): Promise<Required<Pick<Pieces, 'warnings' | 'more'>>> => {
  const warnings: Warning[] = [];
  let more = 0;
  for (const item of items) {
    if (item === null) continue;
    const { index, sent, notes, warned } = item;
    const outcome = outcomes[index];
    more += notes.more;
    if (outcome === undefined || 'problem' in outcome) {
      warnings.push(...notes.found);
      continue;
    }
    const id = outcome.postId;
    const state = foldEvents(post, births.get(id) ?? []);
    const about = { id, state, sent, notes, replayed };
    warnings.push(...(await warned.of(about, `/posts/${index}`)), ...notes.found.map((one) => ({ ...one, id })));
  }
  return { warnings, more };
};

/**
 * If we die between two posts, those before are created and the rest are not. The caller's repeat finds the former by
 * their keys.
 */
const createAll = async (
  call: Call,
  items: readonly (Item | null)[],
  context: CommandContext,
  created: Map<string, readonly DecodedEvent[]>,
): Promise<readonly Outcome[]> => {
  const outcomes: Outcome[] = call.entries.map((entry) =>
    'refusal' in entry ? { problem: itemProblem(entry.refusal) } : { postId: '' },
  );
  const reads = new Reads(call);
  // Entries with one key are one post: the first creates it, and the others answer it.
  const groups = Map.groupBy(
    items.filter((one) => one !== null),
    ({ postId }) => postId,
  );
  await inParallel([...groups.values()], width, async (group) => {
    for (const item of group) {
      outcomes[item.index] = await create(call, item, context, reads, created);
      faultPoint('bulk:between-posts');
    }
  });
  return outcomes;
};

const create = async (
  call: Call,
  { sent, operation, key, warned }: Item,
  shared: CommandContext,
  reads: Reads,
  created: Map<string, readonly DecodedEvent[]>,
): Promise<Outcome> => {
  const { deps, workspaceId, positions } = call;
  const asked = { operation: 'createPost', params: {}, query: {}, body: sent };
  const context: CommandContext = {
    ...shared,
    keyHmac: keyHmacOf(deps.secrets, workspaceId, key),
    fingerprint: fingerprintOf(deps.secrets, workspaceId, asked),
  };
  try {
    const { id, state, events, replayed } = await createIdempotently({
      store: deps.store,
      decider: post,
      operation,
      key,
      context,
      positions,
      command: (postId) => composed(call, sent, { id: postId, commandId: context.commandId }, warned, reads),
      reserve: async (postId, command) => {
        await claimRefOf(call, { clientId: sent.clientId, postId, body: sent });
        await reservePlan(call, postId, command, -1);
      },
    });
    const loaded = replayed ? undefined : { state, events, revision: events.at(-1)?.revision ?? -1 };
    if (state.status === 'live') await fanOutOrLeave(call, id, context, loaded);
    created.set(id, events);
    return { postId: id };
  } catch (error) {
    return { problem: itemProblem(error) };
  }
};

/** The events with which each post was created: of this call, or of the one that finished before. */
const birthsOf = async (
  { deps, positions }: Call,
  { outcomes }: Finished,
  created: ReadonlyMap<string, readonly DecodedEvent[]>,
): Promise<ReadonlyMap<string, readonly DecodedEvent[]>> => {
  const births = new Map(created);
  const missing = outcomes.flatMap((one) => ('postId' in one && !births.has(one.postId) ? [one.postId] : []));
  await inParallel([...new Set(missing)], width, async (id) => {
    const events = await deps.store.readStream(`post-${id}`);
    const birth = birthOf(post, events);
    births.set(
      id,
      events.filter(({ metadata }) => metadata.commandId === birth?.metadata.commandId),
    );
  });
  deps.store.note([...births.values()].flat(), positions);
  return births;
};

const rendered = (
  { deps }: Call,
  { correlationId, outcomes }: Finished,
  births: ReadonlyMap<string, readonly DecodedEvent[]>,
): Pick<Pieces, 'head' | 'items' | 'tail'> => {
  const rejected = outcomes.filter((one) => 'problem' in one).length;
  return {
    head: '{"object":"post_bulk_result","results":[',
    items: function* () {
      for (const [index, outcome] of outcomes.entries()) {
        if ('problem' in outcome) {
          yield { index, status: 'rejected', error: problemBody(deps, correlationId, outcome.problem) };
          continue;
        }
        const events = births.get(outcome.postId) ?? [];
        const shown = answerPost(outcome.postId, foldEvents(post, events), events);
        yield { index, status: 'created', post: shown };
      }
    },
    tail: `],"created":${outcomes.length - rejected},"rejected":${rejected}}`,
  };
};

export const bulkCreatePosts = operation({
  id: 'bulkCreatePosts',
  method: 'POST',
  path: '/posts/bulk',
  tag: postsTag,
  summary: 'Create up to 50 posts',
  description: [
    'Each entry of `posts` is a body of POST /posts and is checked as that operation does. An entry that is rejected harms no other: the call answers 200 with a result for each, and the problem of a rejected one has its pointers relative to the entry. A body that is not `{posts: […]}` refuses the call.',
    'With an Idempotency-Key, a repeat of the call answers the same results. If the call was cut off, or answered 503, repeat it under the same key: it finds the posts that were created and creates the rest. An entry may have an `idempotencyKey` of its own, in one space with the keys of POST /posts: the post under it is answered, or created; two entries with one key are one post.',
    'Counts as one request for each entry, taken as debt. The body has at most 16 MiB and 100,000 values, each entry at most 1 MiB and 10,000 values.',
  ].join('\n\n'),
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  bodyLimit: 16 * 1024 * 1024,
  valueLimit: 100_000,
  entries: 'posts',
  body: PostBulk,
  answer: PostBulkResult,
  codes: ['validation_failed'],
  example: bulkExample,
  handle: (call) => createPosts(call),
});
