import { type PostCommand, post } from '#domain/post/post.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Post, PostCreate, PostReplace } from '#schemas/http/post.ts';
import type { Checked } from '#services/workflows/posts/compose.ts';
import { type Call, operation } from '../call/operation.ts';
import { answerPost, PostWarnings } from './answers.ts';
import { bodyOf } from './body.ts';
import { checkDraft, planForCaller, Reads } from './checks.ts';
import { withDecision } from './decisions.ts';
import { draftExample, postExample, postsTag } from './examples.ts';
import { claimRefOf, refOfDraft } from './external-ref.ts';
import { asDraft, fanOutOrLeave } from './load.ts';
import { reservePlan } from './quota.ts';

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'now' | 'behind'>;

/** The command that creates a post, once every check has passed. @param warned learns it then @throws Rejection */
export const composed = async (
  call: Asking,
  sent: PostCreate,
  { id, commandId }: { readonly id: string; readonly commandId: string },
  warned: PostWarnings,
  reads: Reads = new Reads(call),
): Promise<PostCommand> => {
  const { clientId, saveDraft, ...input } = sent;
  const body = bodyOf(input);
  const createdBy = call.principal.actor;
  if (saveDraft) {
    await checkDraft(call, clientId, body, reads);
    warned.beginDraft(id, clientId, body, reads);
    return { type: 'Draft', clientId, createdBy, body };
  }
  const onChecked = (found: Checked): void => warned.begin(id, body, found);
  const planned = await planForCaller(call, { id, clientId, body, planNumber: 1, onChecked }, reads);
  return { type: 'Schedule', commandId, clientId, createdBy, body, ...planned };
};

/**
 * The post's stream holds the whole plan in its first event, so its append is the acceptance. If we die before the
 * fan-out, or in it, the sweeper carries the plan out. Longer than most operations: half of it is what it promises.
 */
export const createPost = operation({
  id: 'createPost',
  method: 'POST',
  path: '/posts',
  tag: postsTag,
  summary: 'Create a post',
  description: [
    'A post goes to many connected accounts. Each account gets a target of its own, with its own due instant and its own outcome. The answer is the acceptance: the whole plan is stored, and nothing of it is lost.',
    '**What wins.** On one network, `contentOverride` and `mediaIdsOverride` of its variant win over `content` and `mediaIds`; an empty `contentOverride` is a real empty caption. On x and threads, the segments of `thread` win over all of these; other networks ignore the thread and publish the post as it is without one. A variant applies to every target of its network. `overrides.aiGenerated` of a variant wins over `aiDisclosure`.',
    '**Which accounts.** `targets.mode` is `group` for every account of the client that is not disconnected, narrowed by `platforms`; `selection` for listed accounts of the client; `accounts` for listed accounts of any client of the workspace, whose archive state and approval rule then apply too. An account counts once.',
    '**When.** `scheduledLocal` wins over `scheduledAt`. It is a wall-clock time, read in the zone of the account, else of its client, else in `timezone`; where the clocks skip it, it moves forward by the gap, and where it comes twice, the first one counts; a warning says so. `range` spreads the targets evenly from `from` to `to`. `spreadMinutes` delays each target by a time of its own, never before its time. A time up to one minute in the past means now; at most 18 months ahead.',
    '**What is checked.** The call is refused as a whole if one target cannot go out: text over the limit of its network, media that it does not take, a known override of a wrong type or value. `code` is that of the first check that refuses; `errors` names the faults that all checks find, at most 20, with the account of each. Unknown override keys are kept and ignored, with a warning. A required override that is missing is not refused here: that target fails when it is published. With `saveDraft`, none of this is checked, and the post has no targets yet. `meta.warnings` has all that POST /posts/preview would warn of, and the members of the body that nothing reads.',
    '**What is retried.** The service tries a target again by itself where the network limited the rate or failed before it could have published. It never repeats a call whose outcome is unknown: the target becomes `outcome_unknown`, and the network is asked instead. A target that `failed` is tried again only by a retry.',
    '**After the publication.** A `firstComment` follows the post from the same account, on the networks that take one. It is best-effort: the service tries it again only after a refusal that may pass, three times in all, and never repeats a call whose outcome is unknown. If it fails, the target stays published, and its `firstCommentIssue` says why.',
    '**Approval.** A post needs approval where its author is a creator, or where a client of its targets has `approvalRequired`, whether or not `requestApproval` is sent. Its targets are then held (`awaiting_approval`), and `approvalId` names the request that a person decides about: exactly this content goes out, or nothing. A target whose time passes meanwhile goes out once it is approved.',
  ].join('\n\n'),
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: PostCreate,
  answer: Post,
  codes: [
    'validation_failed',
    'idempotency_key_reused',
    'already_exists',
    'schedule_in_past',
    'schedule_too_far',
    'cadence_exceeded',
    'client_archived',
    'account_not_in_client',
    'account_disconnected',
    'no_targets',
    'media_not_publishable',
    'media_not_in_client',
    'thread_not_supported',
    'quota_exceeded',
  ],
  example: postExample,
  handle: async (call) => {
    const { context, notes } = call;
    const warned = new PostWarnings(call);
    const { id, state, events, replayed } = await call.stream(post).create({
      command: (id) => composed(call, call.body, { id, commandId: context.commandId }, warned),
      reserve: async (postId, command) => {
        await claimRefOf(call, { clientId: call.body.clientId, postId, body: call.body });
        await reservePlan(call, postId, command, -1);
      },
    });
    const loaded = replayed ? undefined : { state, events, revision: events.at(-1)?.revision ?? -1 };
    if (state.status === 'live') await fanOutOrLeave(call, id, context, loaded);
    const data = answerPost(id, state, events);
    const warnings = await warned.of({ id, state, sent: call.body, notes, replayed });
    return { data, revision: data.revision, replayed, warnings };
  },
});

export const updatePost = operation({
  id: 'updatePost',
  method: 'PATCH',
  path: '/posts/{id}',
  tag: postsTag,
  summary: 'Replace a whole draft: members that are not sent return to their defaults',
  description:
    'Replaces the whole draft: an optional member that is not sent returns to its default; `targets` and `schedule` are required. Only a draft can be replaced. The input is read as that of POST /posts.',
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: PostReplace,
  answer: Post,
  codes: [
    'validation_failed',
    'post_not_draft',
    'client_archived',
    'media_not_in_client',
    'already_exists',
    'stream_full',
  ],
  example: draftExample,
  handle: async (call) => {
    const { id } = call.params;
    const body = bodyOf(call.body);
    const [reads, warned] = [new Reads(call), new PostWarnings(call)];
    const refs = refOfDraft(call, body);
    const { state, events, revision } = await call.stream(post).act({
      accept: async ({ state }) => {
        const { clientId } = asDraft(state);
        await checkDraft(call, clientId, body, reads);
        warned.beginDraft(id, clientId, body, reads);
      },
      command: () => ({ type: 'ReplaceDraft', body }),
      rule: refs.claim,
      optional: true,
    });
    await refs.release();
    const warnings = await warned.of({ id, state, sent: call.body, notes: call.notes });
    const data = await withDecision(call, answerPost(id, state, events), { state, events });
    return { data, revision, warnings };
  },
});
