/** Calls that were accepted while their caller could publish unasked, and are repeated once they cannot. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Role } from '#schemas/common.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld } from '#test/support/composing.ts';
import type { Answered } from '#test/support/http.ts';
import { livingFor } from '#test/support/meddling.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const { world, tester: owner, composed: own } = await composedWorld(['x', 'bluesky']);
const memberId = await world.memberOf(world.workspaceId, 'manager');
const manager = (await world.keyOf(world.workspaceId, memberId, { mode: 'test' })).caller;

suite('callers who lose authority between a call and its repeat', (t) => {
  const become = async (role: Role) => {
    const command = { type: 'ChangeRole', memberId, role } as const;
    await execute(world.store, workspace, world.workspaceId, command, contextOf(world.operator, world.workspaceId));
    const free = role === 'manager' ? 200 : 403;
    // Only a manager may name clients: the api has noticed the new role.
    const name = () => `C ${randomUUID()}`;
    await until(
      'the role holds',
      async () => (await manager.post('/clients', { name: name(), type: 'brand' })).status === free,
    );
  };
  /** What is left of a call that dies right behind its acceptance and is repeated as a creator. */
  const repeated = async (send: (key: string) => Promise<Answered>): Promise<Answered> => {
    await become('manager');
    const key = randomUUID();
    const { survived } = await livingFor(world, 1, () => send(key));
    assert.equal(survived, false);
    await become('creator');
    return until('the repeat is answered', async () => {
      const answer = await send(key);
      return answer.status === 200 ? answer : null;
    });
  };
  const statuses = ({ data }: Answered) => [
    data.status,
    ...(data.targets as readonly { readonly status: string }[]).map(({ status }) => status),
  ];

  t('a draft that is published waits for an approval', async () => {
    const { data: draft } = await owner.post('/posts', own.body({ saveDraft: true }));
    const answer = await repeated((key) => manager.post(`/posts/${draft.id}/publish`, {}, { key }));
    assert.deepEqual(statuses(answer), ['pending_approval', 'awaiting_approval', 'awaiting_approval']);
  });

  t('a revise is held', async () => {
    const { data: made } = await owner.post('/posts', own.body());
    const answer = await repeated((key) => manager.post(`/posts/${made.id}/revise`, { content: 'Mine.' }, { key }));
    assert.deepEqual(statuses(answer), ['pending_approval', 'awaiting_approval', 'awaiting_approval']);
    assert.equal((answer.data.pendingRevision as { content: string }).content, 'Mine.');
  });
});
