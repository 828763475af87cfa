import { bodyIssues, emptyIssues, gateIssues, type Issue, unsupportedIssues } from '#domain/compose.ts';
import { Rejection } from '#domain/decider.ts';
import { planOf } from '#domain/scheduling.ts';
import { maxPostBytes, type Plan, type PostBody } from '#schemas/post.ts';
import type { Call } from '../operation.ts';
import { ownClient, select } from './destinations.ts';
import { assetsOf, requireDraftMedia, requireMedia } from './media.ts';

/** The gates between a composed body and the post's stream. */

const refuse = (issues: readonly Issue[]): void => {
  if (issues.length > 0) throw new Rejection('validation_failed', 'The input is not valid.', { errors: issues });
};

const refuseTooLarge = (stored: unknown): void => {
  const bytes = Buffer.byteLength(JSON.stringify(stored));
  if (bytes > maxPostBytes) {
    refuse([{ path: '', message: `the post has ${bytes} bytes as stored, at most ${maxPostBytes} are allowed` }]);
  }
};

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'now' | 'behind'>;

/** A draft is held to its own form only: no jitter, no quota, no network's rules. */
export const checkDraft = async (call: Asking, clientId: string, body: PostBody): Promise<void> => {
  refuse(bodyIssues(body, clientId));
  await ownClient(call, clientId);
  requireDraftMedia(body, clientId, await assetsOf(call, body));
  refuseTooLarge(body);
};

/** Every gate of a post that goes out; all or nothing. Media are looked at before the networks' rules: those need to know them. */
export const planPost = async (
  call: Asking,
  post: { readonly id: string; readonly clientId: string; readonly body: PostBody; readonly planNumber: number },
): Promise<Plan> => {
  const { id, clientId, body, planNumber } = post;
  refuse([...bodyIssues(body, clientId), ...unsupportedIssues(body)]);
  // Asked for side by side; what is wrong with the accounts is said first.
  const asked = assetsOf(call, body);
  asked.catch(() => undefined);
  await call.behind(['workspace']);
  const { clients, destinations } = await select(call, clientId, body);
  if (call.principal.role === 'creator' || clients.some((one) => one.approvalRequired)) {
    refuse([
      { path: '/requestApproval', message: 'this post needs approval, which is not supported yet: save it as a draft' },
    ]);
  }
  const plan = planOf({
    postId: id,
    number: planNumber,
    destinations,
    schedule: body.schedule,
    timezone: body.timezone,
    scheduleMode: body.scheduleMode,
    now: call.now,
  });
  const { empty, threadless } = emptyIssues(body, destinations);
  refuse(empty);
  if (threadless.length > 0) {
    throw new Rejection('thread_not_supported', 'Networks without threads need content or media of their own.', {
      errors: threadless,
    });
  }
  const assets = await asked;
  requireMedia(body, destinations, assets);
  refuse(gateIssues(body, destinations, assets));
  refuseTooLarge({ body, plan });
  return plan;
};
