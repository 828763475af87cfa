import { consistencyProof, type Hash, inclusionProof } from '#domain/tree.ts';
import { namedEvent } from '#projections/feed/moments.ts';
import { type FeedEnd, feedEnd, feedPage, keptOf } from '#projections/feed/read.ts';
import { checkpointAt, checkpointsOf, feedKeys } from '#projections/feed/sign.ts';
import { subtreesOf } from '#projections/feed/tree.ts';
import {
  FeedCheckpoint,
  FeedCheckpointQuery,
  FeedGrowth,
  FeedGrowthParams,
  FeedKeys,
  FeedProof,
  FeedProofParams,
  FeedProofQuery,
} from '#schemas/http/event.ts';
import { listPage } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { notFound, Refusal } from '../call/refusal.ts';
import { auditTag, exampleCheckpoint, exampleGrowth, exampleKeys, exampleProof } from './examples.ts';

/** Proofs that the feed is whole: what was signed, that an event is in it, and that it only grew. */

type Asking = Pick<Call, 'deps' | 'workspaceId'>;

const shared = { tag: auditTag, noun: 'event', limited: 'refused', idempotent: 'none' } as const;

const sign = ({ deps, workspaceId }: Asking, { epoch }: FeedEnd, size: number) =>
  checkpointAt(deps.pool, deps.secrets, { workspaceId, epoch, size, now: deps.clock() });

const texts = (proof: readonly Hash[]): readonly string[] => proof.map((one) => one.toString('base64'));

/** @throws Refusal 404 where the feed has fewer events */
const sizeWithin = (wanted: number | undefined, { size }: FeedEnd): number => {
  if (wanted === undefined) return size;
  if (wanted > size) throw new Refusal('not_found', `The feed has ${size} events.`);
  return wanted;
};

/**
 * The number of what is named `<epoch>.<number>` or `<number>`, in the newest epoch.
 * @throws Refusal 410 `event_taken_back`, 404
 */
const numberNow = async ({ deps, workspaceId }: Asking, named: string, end: FeedEnd): Promise<number> => {
  const { epoch = null, sequence = 0 } = namedEvent(named) ?? {};
  if (epoch === null || epoch === end.epoch) return sequence;
  if (epoch > end.epoch) throw new Refusal('not_found', `The feed is in epoch ${end.epoch}.`);
  const kept = await keptOf(deps.pool, workspaceId, epoch);
  if (kept === null || sequence <= kept) return sequence;
  throw new Refusal('event_taken_back', `Of epoch ${epoch} the events up to ${kept} were kept, in epoch ${end.epoch}.`);
};

export const listEventCheckpoints = operation({
  id: 'listEventCheckpoints',
  method: 'GET',
  path: '/events/checkpoints',
  ...shared,
  summary: 'List what was signed of the feed, newest first',
  description:
    'The first page begins with a checkpoint of all events up to now. The note is signed with a key of `getEventKeys`; keep one outside of the service, and a later `getEventGrowth` proves whether what it covers is still there, unchanged.',
  scope: 'events.read',
  cost: 2,
  query: FeedCheckpointQuery,
  answer: FeedCheckpoint,
  list: true,
  codes: [],
  example: { data: exampleCheckpoint },
  handle: async (call) => {
    const { deps, workspaceId, query } = call;
    const end = await feedEnd(deps.pool, workspaceId);
    if (query.cursor === undefined && end.size > 0) await sign(call, end, end.size);
    return listPage('listEventCheckpoints', call, {
      rows: async ({
        after,
        limit,
      }: {
        readonly after: { readonly epoch: number; readonly size: number } | null;
        readonly limit: number;
      }) => {
        const rows = await checkpointsOf(deps.pool, workspaceId, { before: after, limit: limit + 1 });
        return { rows: rows.slice(0, limit), hasMore: rows.length > limit };
      },
      keyOf: ({ epoch, size }) => ({ epoch, size }),
      show: (checkpoint) => checkpoint,
    });
  },
});

export const getEventProof = operation({
  id: 'getEventProof',
  method: 'GET',
  path: '/events/{sequence}/proof',
  ...shared,
  summary: 'Prove that an event is in the feed',
  description:
    'The answer names the event: behind a restore a number may be that of another one, so ask with the cursor of the one that you mean. The hashes lead from the leaf of the event to the root of the checkpoint (RFC 9162, 2.1.3). The leaf is SHA-256 over a zero byte and, each behind its length in 8 bytes, id, stream, revision, type, data and metadata of `form=stored`.',
  scope: 'events.read',
  cost: 2,
  params: FeedProofParams,
  query: FeedProofQuery,
  answer: FeedProof,
  codes: ['event_taken_back'],
  example: { data: exampleProof },
  handle: async (call) => {
    const { deps, workspaceId, params, query } = call;
    const end = await feedEnd(deps.pool, workspaceId);
    const sequence = await numberNow(call, params.sequence, end);
    const size = sizeWithin(query.size, end);
    if (sequence > size) throw notFound('event');
    const [row] = await feedPage(deps.pool, workspaceId, { after: sequence - 1, until: sequence, limit: 1 });
    // A restore began an epoch since the end was asked for.
    if (row === undefined) throw notFound('event');
    const subtrees = subtreesOf(deps.pool, workspaceId);
    const leaf = await subtrees({ level: 0, index: sequence - 1 });
    const proof = texts(await inclusionProof(subtrees, sequence - 1, size));
    const event = { sequence, cursor: `${end.epoch}.${sequence}`, id: row.eventId };
    return { data: { ...event, hash: leaf.toString('base64'), proof, checkpoint: await sign(call, end, size) } };
  },
});

export const getEventGrowth = operation({
  id: 'getEventGrowth',
  method: 'GET',
  path: '/events/checkpoints/{size}/growth',
  ...shared,
  summary: 'Prove that the feed only grew',
  description:
    'The hashes show that the tree of `checkpoint` begins with that of `former` (RFC 9162, 2.1.4). Compare the root of `former` with the one that you kept: in one epoch a size has one root for ever. Behind a restore name the epoch of your checkpoint too: a size that the restore took back is refused, where the number alone would be answered for the events that have it now.',
  scope: 'events.read',
  cost: 2,
  params: FeedGrowthParams,
  query: FeedProofQuery,
  answer: FeedGrowth,
  codes: ['event_taken_back'],
  example: { data: exampleGrowth },
  handle: async (call) => {
    const { deps, workspaceId, params, query } = call;
    const end = await feedEnd(deps.pool, workspaceId);
    const size = sizeWithin(query.size, end);
    const former = sizeWithin(await numberNow(call, params.size, end), { ...end, size });
    const proof = texts(await consistencyProof(subtreesOf(deps.pool, workspaceId), former, size));
    return { data: { former: await sign(call, end, former), checkpoint: await sign(call, end, size), proof } };
  },
});

export const getEventKeys = operation({
  id: 'getEventKeys',
  method: 'GET',
  path: '/events/keys',
  ...shared,
  summary: 'Get the public keys of checkpoints',
  description: 'The same document is at `/.well-known/postline-feed-keys.json`, for whoever has no key of the API.',
  scope: 'events.read',
  cost: 1,
  answer: FeedKeys,
  codes: [],
  example: { data: exampleKeys },
  handle: async ({ deps }) => ({ data: { keys: await feedKeys(deps.pool) } }),
});
