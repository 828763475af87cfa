import type { PostCommand } from '#domain/post/post.ts';
import type { PostCreate } from '#schemas/http/post.ts';
import type { Checked } from '#services/workflows/posts/compose.ts';
import type { Call } from '../operation.ts';
import { bodyOf } from './body.ts';
import { checkDraft, planForCaller } from './checks.ts';
import { Reads } from './reads.ts';
import type { PostWarnings } from './warnings.ts';

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
