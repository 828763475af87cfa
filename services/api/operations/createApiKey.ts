import { Rejection } from '#domain/decider.ts';
import { roleAllows } from '#domain/roles.ts';
import { freePlace, maxKeys, takePlace } from '#projections/queries/credential-places.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { ApiKeyCreate, ApiKeyShown } from '#schemas/http/console.ts';
import { createApiKey as create } from '#services/workflows/provision.ts';
import { exampleApiKey, operatorOf, requireProvenMember, untilAccepted } from '../console/keys.ts';
import { operation } from '../operation.ts';
import { invalid } from '../refusal.ts';

export const createApiKey = operation({
  id: 'createApiKey',
  method: 'POST',
  path: '/api-keys',
  tag: 'console',
  summary: 'Create an API key',
  description:
    'The key acts for you: it never may more than your role carries at the time of a call. Where this installation sends mails, you have confirmed your address first. The answer shows it once. A repeat of the call makes another key.',
  scope: 'agency.read',
  role: 'manager',
  firstParty: true,
  idempotent: 'none',
  cost: 1,
  body: ApiKeyCreate,
  answer: ApiKeyShown,
  codes: ['too_many_keys'],
  example: {
    body: { name: 'Newsroom importer', mode: 'test', scopes: ['posts.read'], expiresAt: '2027-01-31T08:00:00Z' },
    data: { ...exampleApiKey, scopes: ['posts.read'], secret: 'sk_test_<49 characters>' },
  },
  handle: async (call) => {
    const { principal, body, now } = call;
    await requireProvenMember(call);
    const above = body.scopes.findIndex((scope) => !roleAllows(principal.role, scope));
    if (above >= 0)
      throw invalid(`/scopes/${above}`, 'not_allowed', `must be one that the role ${principal.role} carries`);
    const { name, mode, clientIds = null } = body;
    const expiresAt = new Date(body.expiresAt).toISOString();
    const { liveWorkspaceId: workspaceId, memberId } = principal;
    const scopes = [...new Set(body.scopes)];
    const wanted = { ...{ workspaceId, memberId, name, mode, scopes, expiresAt }, clientIds };
    const keyId = uuidv7();
    const place = { workspaceId, id: keyId };
    if (!(await takePlace(call.deps, 'apikey', place, () => call.behind(['workspace'])))) {
      throw new Rejection('too_many_keys', `A workspace may have ${maxKeys} API keys that work: revoke one.`);
    }
    const { id, secret, prefix } = await create(operatorOf(call), wanted, keyId).catch(async (error: unknown) => {
      // A key that was refused is never made; of any other error nobody knows, and its place lapses.
      if (error instanceof Rejection) await freePlace(call.deps.pool, keyId);
      // The same words for an unknown client and for one of another workspace.
      if (!(error instanceof Rejection) || error.code !== 'not_found') throw error;
      throw invalid('/clientIds', 'not_allowed', `must be clients of the ${mode} workspace`);
    });
    await untilAccepted(call);
    const ends = { createdAt: now, expiresAt, previousUntil: null, lastUsedAt: null, revokedAt: null };
    return { data: { id, object: 'api_key', name, mode, prefix, memberId, scopes, clientIds, ...ends, secret } };
  },
});
