import { setImmediate } from 'node:timers/promises';
import { bodyIssues, emptyIssues, gateIssues, type PostAssets, unsupportedIssues } from '#domain/compose.ts';
import { Rejection } from '#domain/decider.ts';
import { type Destination, planOf } from '#domain/scheduling.ts';
import type { Issue } from '#schemas/issues.ts';
import { maxPostBytes, type Plan, type PostBody } from '#schemas/post.ts';
import type { Call } from '../operation.ts';
import { ownClient, select } from './destinations.ts';
import { assetsOf, requireDraftMedia, requireMedia } from './media.ts';

/** The gates between a composed body and the post's stream. */

const refuse = (issues: readonly Issue[]): void => {
  if (issues.length > 0) throw new Rejection('validation_failed', 'The input is not valid.', { errors: issues });
};

/** @returns bytes as stored. */
const refuseTooLarge = (stored: unknown): number => {
  const bytes = Buffer.byteLength(JSON.stringify(stored));
  if (bytes > maxPostBytes) {
    refuse([
      {
        path: '',
        code: 'too_many_bytes',
        message: `the post has ${bytes} bytes as stored, at most ${maxPostBytes} are allowed`,
      },
    ]);
  }
  return bytes;
};

/** For texts of at least this many bytes, the gate counts for one network in each turn of the event loop. */
const slowToCount = 32 * 1024;

/** @throws Rejection `validation_failed` */
const refuseByNetworks = async (
  body: PostBody,
  destinations: readonly Destination[],
  assets: PostAssets,
  bytes: number,
) => {
  if (bytes < slowToCount) return refuse(gateIssues(body, destinations, assets));
  const issues: Issue[] = [];
  for (const ofNetwork of Map.groupBy(destinations, ({ platform }) => platform).values()) {
    issues.push(...gateIssues(body, ofNetwork, assets));
    await setImmediate();
  }
  refuse(issues);
};

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'now' | 'behind'>;

/** Checks only the form of a draft: no jitter, no quota, no rules of networks. */
export const checkDraft = async (call: Asking, clientId: string, body: PostBody): Promise<void> => {
  refuseTooLarge(body);
  refuse(bodyIssues(body, clientId));
  await ownClient(call, clientId);
  requireDraftMedia(body, clientId, await assetsOf(call, body));
};

const needsApproval: Issue = {
  path: '/requestApproval',
  code: 'not_supported_yet',
  message: 'this post needs approval, which is not supported yet: save it as a draft',
};

/**
 * Runs every check of a post that is to be published; all or nothing. Media are checked before the rules of the
 * networks, which need to know them. `not_supported_yet` comes last: it says that nothing else is wrong.
 */
export const planPost = async (
  call: Asking,
  post: {
    readonly id: string;
    readonly clientId: string;
    readonly body: PostBody;
    readonly planNumber: number;
    /** The targets of the plan. Default: the accounts that the body selects. */
    readonly select?: typeof select;
  },
): Promise<Plan> => {
  const { id, clientId, body, planNumber } = post;
  // Before any check reads the texts: the time of the checks grows with their size.
  refuseTooLarge(body);
  refuse(bodyIssues(body, clientId));
  // Both are read at the same time; problems of the accounts are reported first.
  const asked = assetsOf(call, body);
  asked.catch(() => undefined);
  await call.behind(['workspace']);
  const { clients, destinations } = await (post.select ?? select)(call, clientId, body);
  const plan = planOf({
    postId: id,
    number: planNumber,
    destinations,
    schedule: body.schedule,
    timezone: body.timezone,
    scheduleMode: body.scheduleMode,
    now: call.now,
  });
  const bytes = refuseTooLarge({ body, plan });
  const { empty, threadless } = emptyIssues(body, destinations);
  refuse(empty);
  if (threadless.length > 0) {
    throw new Rejection('thread_not_supported', 'Networks without threads need content or media of their own.', {
      errors: threadless,
    });
  }
  const assets = await asked;
  requireMedia(body, destinations, assets);
  await refuseByNetworks(body, destinations, assets, bytes);
  const isHeld = call.principal.role === 'creator' || clients.some((one) => one.approvalRequired);
  const unsupported = [...unsupportedIssues(body), ...(isHeld ? [needsApproval] : [])];
  if (unsupported.length > 0) {
    const detail = 'The post uses a part of the specification that is not supported yet.';
    throw new Rejection('not_supported_yet', detail, { errors: unsupported });
  }
  return plan;
};
