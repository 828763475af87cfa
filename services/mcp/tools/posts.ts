import { type Static, Type } from 'typebox';
import type { PostSummary as SummarySchema } from '#schemas/http/post.ts';
import { postStatuses } from '#schemas/post.ts';
import { targetStatuses } from '#schemas/target.ts';
import type { ToolCall } from '../call.ts';
import { reads, tool } from '../tool.ts';
import {
  Args,
  Id,
  Instant,
  joined,
  Maybe,
  Mode,
  many,
  moreOf,
  Next,
  NextCursor,
  Nullable,
  Platforms,
  pageOf,
  plainPaging,
  Text,
} from '../words.ts';
import { defined } from './composing.ts';
import {
  accountNames,
  DecisionOut,
  decisionLine,
  decisionOf,
  localTime,
  maxTargetsShown,
  nextStepOf,
  PendingOut,
  type Post,
  type PostTarget,
  pendingLine,
  pendingOf,
  shownTargets,
  standOf,
  TargetOut,
  targetLine,
} from './post-words.ts';

/** Posts that exist, and how they fared. */

type Summary = Static<typeof SummarySchema>;

const Counts = Type.Record(Type.String(), Type.Integer(), { description: 'Number of targets by status, and in all.' });

export const findPosts = tool({
  name: 'find_posts',
  title: 'Find posts',
  description:
    'Finds posts by client, status, network, time or part of the text, newest first, and answers their ids. The text is cut; post_status has one post with its targets.',
  scopes: ['posts.read'],
  hints: reads,
  input: Args({
    clientId: Maybe(Id()),
    campaignId: Maybe(Id('Only posts of this campaign.')),
    statuses: Maybe(
      Type.Array(Type.Enum(postStatuses.filter((one) => one !== 'discarded')), {
        minItems: 1,
        maxItems: 8,
        description: 'Only posts that stand so.',
      }),
    ),
    platforms: Maybe(Platforms('Only posts with a target on one of these networks.')),
    from: Maybe(Instant('Scheduled (a draft: created) at or after.')),
    to: Maybe(Instant('Scheduled (a draft: created) before.')),
    search: Maybe(Text(200, 'Part of the text, ignoring case.')),
    externalRef: Maybe(Text(100, 'Only the posts with this reference.')),
    ...plainPaging,
  }),
  output: Type.Object({
    mode: Mode,
    posts: Type.Array(
      Type.Object({
        postId: Type.String(),
        clientId: Type.String(),
        status: Type.String(),
        content: Type.String(),
        scheduledAt: Nullable(Type.String(), 'When the first target is due.'),
        publishedAt: Nullable(Type.String()),
        approvalId: Nullable(Type.String()),
        lastDecision: Nullable(Type.Object({ status: Type.String() }), 'As in post_status.'),
        externalRef: Nullable(Type.String()),
        counts: Counts,
      }),
    ),
    nextCursor: NextCursor,
    nextStep: Next,
  }),
  run: async (call, { statuses, platforms, limit, cursor, ...filters }) => {
    const query = {
      ...filters,
      status: statuses,
      platform: platforms,
      ...pageOf({ ...(limit ? { limit } : {}), ...(cursor ? { cursor } : {}) }),
    };
    const { data, page } = await call.invoke<Summary[]>('listPosts', { query });
    const posts = data.map(({ id, content, counts, ...post }) => ({
      postId: id,
      clientId: post.clientId,
      status: post.status,
      content: call.cuts.text('content', content, 200),
      scheduledAt: post.scheduledAt,
      publishedAt: post.publishedAt,
      approvalId: post.approvalId,
      lastDecision: decisionOf(post.lastDecision),
      externalRef: post.externalRef,
      counts: counts as Record<string, number>,
    }));
    const nextCursor = page?.nextCursor ?? null;
    const nextStep =
      posts.length === 0 ? 'No post fits. Widen the search.' : 'post_status with a postId tells of its targets.';
    const lines = posts.map(
      ({ postId, status, content, scheduledAt, counts }) =>
        `- ${postId}: ${status}${scheduledAt === null ? '' : `, due ${scheduledAt}`}, ${many(counts.total ?? 0, 'target')}, ${call.cuts.quoted('content', content)}`,
    );
    const text = joined(`${many(posts.length, 'post')} (${call.mode}).`, ...lines, moreOf(nextCursor), nextStep);
    return { text, data: { mode: call.mode, posts, nextCursor, nextStep } };
  },
});

const Found = Type.Object({
  targetId: Type.String(),
  postId: Type.String(),
  clientId: Type.String(),
  accountId: Type.String(),
  account: Nullable(Type.String()),
  platform: Type.String(),
  status: Type.String(),
  scheduledAt: Type.String(),
  localTime: Type.String(),
  permalink: Nullable(Type.String()),
  content: Type.String({ description: 'The beginning of its text.' }),
  reason: Type.String({ description: 'Why it stands so.' }),
  whatToDo: Type.String(),
  retryAt: Nullable(Type.String(), 'When it is tried again by itself.'),
});

const foundOf = ({ cuts }: ToolCall, target: PostTarget, names: ReadonlyMap<string, string>): Static<typeof Found> => ({
  targetId: target.id,
  ...{ postId: target.postId, clientId: target.clientId, accountId: target.accountId },
  account: names.get(target.accountId) ?? null,
  ...{ platform: target.platform, status: target.status, scheduledAt: target.scheduledAt },
  localTime: localTime(target.scheduledAt, target.timezone),
  permalink: target.permalink,
  content: cuts.text('content', target.content, 80),
  ...standOf(cuts, target),
  retryAt: target.retryAt,
});

const foundLine = ({ cuts }: ToolCall, { platform, account, ...one }: Static<typeof Found>): string =>
  `- ${platform}${account === null ? '' : ` ${JSON.stringify(account)}`} (targetId ${one.targetId}, postId ${one.postId}): ${one.status}, ${one.localTime}${one.permalink === null ? '' : `, ${one.permalink}`}, ${cuts.quoted('content', one.content)}. ${one.reason} What to do: ${one.whatToDo}`;

export const findTargets = tool({
  name: 'find_targets',
  title: 'Find single targets of posts',
  description:
    'Finds targets, which are single accounts of posts, by status, time, client, account or network, the earliest first: each with why it stands so and what to do. Use it for “what failed this week and why”, or to name targetIds for reschedule, retry and cancel.',
  scopes: ['posts.read'],
  hints: reads,
  input: Args({
    clientId: Maybe(Id('Only on accounts of this client.')),
    accountId: Maybe(Id('Only on this account.')),
    platforms: Maybe(Platforms('Only on these networks.')),
    statuses: Maybe(
      Type.Array(Type.Enum([...targetStatuses]), {
        minItems: 1,
        maxItems: 9,
        description: 'Only those that stand so.',
      }),
    ),
    from: Maybe(Instant('Due at or after.')),
    to: Maybe(Instant('Due before.')),
    ...plainPaging,
  }),
  output: Type.Object({ mode: Mode, targets: Type.Array(Found), nextCursor: NextCursor, nextStep: Next }),
  run: async (call, { statuses, platforms, limit, cursor, ...filters }) => {
    const query = {
      ...filters,
      status: statuses,
      platform: platforms,
      ...pageOf({ ...defined({ limit, cursor }) }),
    };
    const { data, page } = await call.invoke<PostTarget[]>('listPostTargets', { query });
    const names = data.length === 0 ? new Map<string, string>() : await accountNames(call, filters.clientId);
    const targets = data.map((one) => foundOf(call, one, names));
    const nextCursor = page?.nextCursor ?? null;
    const nextStep =
      targets.length === 0
        ? 'No target fits. Widen the search; drafts have no targets, find_posts finds them.'
        : 'Each says what to do. retry, reschedule and cancel take targetIds, or the same window and networks.';
    const text = joined(
      `${many(targets.length, 'target')} (${call.mode}).`,
      ...targets.map((one) => foundLine(call, one)),
      moreOf(nextCursor),
      nextStep,
    );
    return { text, data: { mode: call.mode, targets, nextCursor, nextStep } };
  },
});

export const postStatus = tool({
  name: 'post_status',
  title: 'Status of a post',
  description:
    'How one post stands: each target with its account, time and outcome, the address of what is out, and for each failure why and what to do. Use it after publishing, and before reschedule, cancel or retry of single targets.',
  scopes: ['posts.read'],
  hints: reads,
  input: Args({ postId: Id('The post.') }),
  output: Type.Object({
    mode: Mode,
    postId: Type.String(),
    clientId: Type.String(),
    status: Type.String(),
    content: Type.String(),
    pendingRevision: PendingOut,
    approvalId: Nullable(Type.String()),
    lastDecision: DecisionOut,
    counts: Counts,
    targets: Type.Array(TargetOut, { description: 'Those that need somebody first.' }),
    targetsInAll: Type.Integer(),
    nextStep: Next,
  }),
  run: async (call, { postId }) => {
    const { data: post } = await call.invoke<Post>('getPost', { params: { id: postId } });
    const targets = shownTargets(call.cuts, post.targets, await accountNames(call, post.clientId));
    const nextStep = nextStepOf(post);
    const text = joined(
      `The post ${post.id} is ${post.status} (${call.mode}): ${many(post.targets.length, 'target')}. Its text: ${call.cuts.quoted('content', post.content, 200)}`,
      pendingLine(call.cuts, post.pendingRevision),
      decisionLine(call.cuts, post.lastDecision),
      ...targets.map(targetLine),
      post.targets.length > maxTargetsShown ? `… and ${post.targets.length - maxTargetsShown} more targets` : null,
      nextStep,
    );
    return {
      text,
      data: {
        mode: call.mode,
        postId: post.id,
        clientId: post.clientId,
        status: post.status,
        content: call.cuts.text('content', post.content, 1000),
        pendingRevision: pendingOf(call.cuts, post.pendingRevision),
        approvalId: post.approvalId,
        lastDecision: decisionOf(post.lastDecision),
        counts: post.counts as Record<string, number>,
        targets,
        targetsInAll: post.targets.length,
        nextStep,
      },
    };
  },
});
