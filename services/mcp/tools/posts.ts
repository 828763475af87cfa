import { type Static, Type } from 'typebox';
import type { PostSummary as SummarySchema } from '#schemas/http/post.ts';
import { postStatuses } from '#schemas/post.ts';
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
  paging,
  Text,
} from '../words.ts';
import {
  accountNames,
  DecisionOut,
  decisionLine,
  decisionOf,
  maxTargetsTold,
  nextStepOf,
  type Post,
  shownTargets,
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
    'Finds posts by client, status, network, time or part of the text, newest first, and answers their ids. Use it for “what is scheduled next week”, “my drafts” or “what failed”. The text is cut; post_status has one post with its targets.',
  scopes: ['posts.read'],
  hints: reads,
  input: Args({
    clientId: Maybe(Id('Only posts of this client.')),
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
    ...paging,
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
        lastDecision: DecisionOut,
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
      decisionLine(call.cuts, post.lastDecision),
      ...targets.map(targetLine),
      post.targets.length > maxTargetsTold ? `… and ${post.targets.length - maxTargetsTold} more targets` : null,
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
