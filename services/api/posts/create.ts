import type { PostCommand } from '#domain/post.ts';
import type { PostCreate } from '#schemas/http/post.ts';
import type { Call } from '../operation.ts';
import { bodyOf } from './body.ts';
import { checkDraft, planForCaller } from './checks.ts';
import { Reads } from './reads.ts';

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'now' | 'behind'>;

/** The command that creates a post, once every check has passed. @throws Rejection */
export const composed = async (
  call: Asking,
  sent: PostCreate,
  { id, commandId }: { readonly id: string; readonly commandId: string },
  reads: Reads = new Reads(call),
): Promise<PostCommand> => {
  const { clientId, saveDraft, ...input } = sent;
  const body = bodyOf(input);
  const createdBy = call.principal.actor;
  if (saveDraft) {
    await checkDraft(call, clientId, body, reads);
    return { type: 'Draft', clientId, createdBy, body };
  }
  const planned = await planForCaller(call, { id, clientId, body, planNumber: 1 }, reads);
  return { type: 'Schedule', commandId, clientId, createdBy, body, ...planned };
};
