import { campaign } from '#domain/campaign.ts';
import { type PostState, post } from '#domain/post/post.ts';
import type { CampaignChange } from '#domain/post/post-approval.ts';
import type { CommandContext, Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import { CampaignPosts, CampaignPostsResult } from '#schemas/http/campaign-posts.ts';
import { IdParams } from '#schemas/http/common.ts';
import { isOf } from '../call/commands.ts';
import { type Call, type One, operation } from '../call/operation.ts';
import { type ItemProblem, itemProblem, problemBody } from '../call/problems.ts';
import { invalid, notFound } from '../call/refusal.ts';
import { ownStream } from '../call/rows.ts';
import { loadPost } from '../posts/load.ts';
import { assignExample, campaignsTag } from './examples.ts';

/** Posts that join a campaign, or leave it. Each post decides for itself; a refusal of one stops no other. */

type Assigning = Call<{ readonly id: string }, unknown, CampaignPosts>;

/** Posts under way at once. */
const width = 8;

interface Accepted {
  /** Of the campaign. */
  readonly revision: number;
  /** Null: it takes posts of any client. Never changes. */
  readonly clientId: string | null;
}

type Outcome =
  | { readonly postId: string; readonly revision: number }
  | { readonly postId: string; readonly problem: ItemProblem };

interface Finished {
  /** Of the call that finished: the problems of its posts name it. */
  readonly correlationId: string;
  readonly revision: number;
  readonly outcomes: readonly Outcome[];
}

/** @throws Refusal 404 for a campaign that is unknown, deleted or another workspace's; 412 */
export const loadCampaign = async (
  call: Pick<Call<{ readonly id: string }>, 'deps' | 'params' | 'workspaceId' | 'guard'>,
) => {
  const loaded = await call.deps.store.load(campaign, call.params.id);
  const { state, revision, events } = loaded;
  ownStream({ ...call, guard: () => undefined }, 'campaign')(loaded);
  if (state.status !== 'live') throw notFound('campaign');
  call.guard(loaded);
  return { state, revision, events };
};

/**
 * If we die between two posts, those before have changed and the rest have not. The caller's repeat finds the command in
 * the streams of the former, and appends to the rest.
 */
const changePosts = async (call: Assigning, type: CampaignChange['type']): Promise<One<unknown>> => {
  const ids = [...new Set(call.body.postIds)];
  await call.charge(ids.length - 1);
  const { result, replayed } = await call.once(
    async (): Promise<Accepted> => {
      const { state, revision } = await loadCampaign(call);
      return { revision, clientId: state.clientId };
    },
    async (accepted, context): Promise<Finished> => {
      const outcomes = new Map<string, Outcome>();
      await inParallel(ids, width, async (postId) => {
        outcomes.set(postId, await change(call, type, postId, accepted, context));
        faultPoint('campaign:between-posts');
      });
      const { correlationId } = call;
      return { correlationId, revision: accepted.revision, outcomes: ids.flatMap((id) => outcomes.get(id) ?? []) };
    },
  );
  return { data: shown(call, result), revision: result.revision, replayed };
};

const change = async (
  call: Assigning,
  type: CampaignChange['type'],
  postId: string,
  { clientId }: Accepted,
  context: CommandContext,
): Promise<Outcome> => {
  const { deps, params, positions } = call;
  try {
    const before = await loadPost(call, postId);
    const own = before.events.findLast(isOf(context));
    // This command's own event: another caller may have moved the post since.
    if (own !== undefined) {
      deps.store.note([own], positions);
      return { postId, revision: own.revision };
    }
    if (type === 'JoinCampaign' && clientId !== null && before.state.clientId !== clientId) {
      const path = `/postIds/${call.body.postIds.indexOf(postId)}`;
      throw invalid(path, 'mismatch', 'belongs to another client than the campaign');
    }
    const loaded: Loaded<PostState> = before;
    const options = { positions, loaded, optional: true };
    const after = await execute(deps.store, post, postId, { type, campaignId: params.id }, context, options);
    return { postId, revision: after.appended[0]?.revision ?? after.revision };
  } catch (error) {
    return { postId, problem: itemProblem(error) };
  }
};

const shown = ({ deps, params, asSent }: Assigning, { correlationId, revision, outcomes }: Finished) => ({
  object: 'campaign_posts_result',
  campaignId: params.id,
  revision,
  results: outcomes.map(({ postId, ...outcome }) => ({
    postId: asSent(postId),
    ...('problem' in outcome
      ? { ok: false, error: problemBody(deps, correlationId, outcome.problem) }
      : { ok: true, revision: outcome.revision }),
  })),
});

export const assignCampaignPosts = operation({
  id: 'assignCampaignPosts',
  method: 'POST',
  path: '/campaigns/{id}/assign',
  tag: campaignsTag,
  summary: 'Add up to 100 posts to a campaign',
  description: [
    'A post of another campaign leaves that one; one that belongs to the campaign already stays as it is. A post of another client than that of the campaign is refused.',
    'Each post is changed for itself, and one that is refused stops no other: the call answers 200 with a result for each. An id that is unknown, or of another workspace, is refused with `not_found`. With an Idempotency-Key, a repeat of the call answers the same results; if the call was cut off, the repeat changes the rest of the posts.',
    'Counts as one request for each post, taken as debt.',
  ].join('\n\n'),
  scope: 'campaigns.manage',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: CampaignPosts,
  answer: CampaignPostsResult,
  codes: ['validation_failed', 'stream_full'],
  example: assignExample,
  handle: (call) => changePosts(call, 'JoinCampaign'),
});

export const unassignCampaignPosts = operation({
  id: 'unassignCampaignPosts',
  method: 'POST',
  path: '/campaigns/{id}/unassign',
  tag: campaignsTag,
  summary: 'Remove up to 100 posts from a campaign',
  description: [
    'A post that does not belong to the campaign stays as it is.',
    'Each post is changed for itself, and one that is refused stops no other: the call answers 200 with a result for each. An id that is unknown, or of another workspace, is refused with `not_found`. With an Idempotency-Key, a repeat of the call answers the same results; if the call was cut off, the repeat changes the rest of the posts.',
    'Counts as one request for each post, taken as debt.',
  ].join('\n\n'),
  scope: 'campaigns.manage',
  limited: 'ids',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: CampaignPosts,
  answer: CampaignPostsResult,
  codes: ['validation_failed', 'stream_full'],
  example: assignExample,
  handle: (call) => changePosts(call, 'LeaveCampaign'),
});
