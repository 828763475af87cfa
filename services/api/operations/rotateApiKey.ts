import { IdParams } from '#schemas/http/common.ts';
import { ApiKeyShown } from '#schemas/http/console.ts';
import { rotateApiKey as rotate } from '#services/workflows/provision.ts';
import { exampleApiKey, operatorOf, ownKey, requireProvenMember, showKey, untilAccepted } from '../console/keys.ts';
import { membersOf } from '../console/team.ts';
import { operation } from '../operation.ts';
import { Refusal } from '../refusal.ts';

export const rotateApiKey = operation({
  id: 'rotateApiKey',
  method: 'POST',
  path: '/api-keys/{id}/rotate',
  tag: 'console',
  summary: 'Rotate an API key',
  description:
    'Makes a new key with the same powers and shows it once. The former one works for another 24 hours, at most until it expires. Owners rotate every key, Managers their own: whoever sees the new key has the power of its member. A repeat of the call rotates again.',
  scope: 'agency.read',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  params: IdParams,
  answer: ApiKeyShown,
  codes: [],
  example: { data: { ...exampleApiKey, secret: 'sk_test_<49 characters>' } },
  handle: async (call) => {
    const { principal, params } = call;
    await requireProvenMember(call);
    const { key, lastUsedAt } = await ownKey(call, params.id);
    // The new key acts for the member of the former one, with the role that this member has or will have. The stream
    // knows who is an Owner now; the read models may be behind.
    const isOwn = key.memberId === principal.memberId;
    if (!isOwn && (await membersOf(call))[principal.memberId]?.role !== 'owner') {
      throw new Refusal('role_required', 'Only an owner may rotate the key of another member.');
    }
    const { prefix, previousUntil, secret } = await rotate(operatorOf(call), principal.liveWorkspaceId, params.id);
    await untilAccepted(call);
    return { data: { ...showKey(key, lastUsedAt), prefix, previousUntil, secret } };
  },
});
