/** `network check` of LinkedIn with a document and who sees it, over a strict LinkedIn. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { account } from '#domain/account.ts';
import type { Adapters } from '#infra/adapters.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import { type LinkedInNetwork, startLinkedIn } from '#test/support/networks/linkedin/index.ts';
import type { Person } from '#test/support/networks/linkedin/state.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { run } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { openOperator } from './network-operator.ts';

const key = `v1:${randomBytes(32).toString('base64')}`;

suite('network check of linkedin', { timeoutMs: 120_000 }, (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'linkedin-check-'));
  let network: LinkedInNetwork;
  let adapters: Adapters;
  let operator: Operator;
  let env: Record<string, string> & { SECRET_KEY: string };
  let person: Person;

  t.before(async () => {
    network = await startLinkedIn();
    person = network.person('Ada Lovelace');
    const { url } = await preparedDatabase();
    env = { DATABASE_URL: url, SECRET_KEY: key, PRIVATE_TARGETS: '*', ...network.env };
    ({ adapters, operator } = await openOperator(env));
  });
  t.after(async () => {
    await adapters?.close();
    network?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const connected = async (externalId: string): Promise<string> => {
    const id = randomUUID();
    const owner = { workspaceId: randomUUID(), clientId: randomUUID(), platform: 'linkedin' as const };
    const connect = {
      ...({ type: 'Connect', clientId: owner.clientId, platform: 'linkedin', externalId, network: 'live' } as const),
      ...{ inviteId: null, username: null, displayName: null, avatarUrl: null, scopes: [], expiresAt: null },
      timezone: null,
    };
    const { store, positions } = operator;
    await execute(store, account, id, connect, contextOf(operator, owner.workspaceId), { positions });
    const secret = { ...network.grant(person), accessUntil: new Date(Date.now() + 86_400_000).toISOString() };
    await adapters.credentials.keep({ accountId: id, ...owner }, { secret, expiresAt: null, grant: person.id });
    return id;
  };
  const typed = (id: string, ...args: readonly string[]) =>
    run('services/admin/main.ts', { env, args: ['network', 'check', 'linkedin', '--account', id, '--yes', ...args] });

  t(
    'publishes a document for the connections of a member, and text for an organization, and deletes both',
    async () => {
      const file = path.join(folder, 'report.pdf');
      writeFileSync(file, '%PDF-1.7');
      const member = await connected(`urn:li:person:${person.id}`);
      const first = await typed(member, '--media', file, '--set', 'visibility=CONNECTIONS');
      assert.equal(first.code, 0, first.output);
      const page = await connected(`urn:li:organization:${network.organization(person).id}`);
      const second = await typed(page);
      assert.equal(second.code, 0, second.output);
      const [document, text, ...others] = network.state.posts;
      assert.ok(document !== undefined && text !== undefined && others.length === 0);
      assert.equal(document.visibility, 'CONNECTIONS');
      assert.match(JSON.stringify(document.content), /urn:li:document:\w+","title":"A test of our publishing software/);
      assert.equal(text.text.isCut, false);
      assert.match(text.text.shown, /\([0-9a-f]{8}\)$/);
      for (const [{ id }, { output }] of [
        [document, first],
        [text, second],
      ] as const) {
        assert.ok(network.state.deleted.has(id));
        assert.match(output, new RegExp(`Published: https://www\\.linkedin\\.com/feed/update/${id}/\\ndeleted\\n`));
      }
    },
  );

  t('a member’s lost answer names the mark to look for, and no second call is made', async () => {
    const member = await connected(`urn:li:person:${person.id}`);
    network.script({ route: 'POST /rest/posts', then: 'drop_after' });
    const { creates } = network.state;
    const before = creates.length;
    const { code, output } = await typed(member);
    assert.equal(code, 1, output);
    assert.match(output, /Look for a post with \([0-9a-f]{8}\) on the account, and delete it there/);
    assert.equal(creates.length, before + 1);
  });
});
