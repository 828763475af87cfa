/** The one machine of `npm start`: its data folder is copied, goes on, is lost, and is put back as infra/RESTORE.md says. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, rmSync } from 'node:fs';
import { type Caller, callerOf } from '#test/support/http.ts';
import { dataFolder } from '#test/support/postgres.ts';
import { type Process, printedUrl, run, start } from '#test/support/processes.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';

const page = readFileSync(new URL('../../infra/RESTORE.md', import.meta.url), 'utf8');

suite('from a copy of the data folder to the last post', { drawn: true, costs: 14, timeoutMs: 240_000 }, (t) => {
  const folder = dataFolder();
  const { dataDir } = folder;
  const copy = `${dataDir}.copy`;
  afterFile(() => rmSync(copy, { recursive: true, force: true }));
  let service: Process;
  let http: Caller;

  const up = async (env: Readonly<Record<string, string>> = {}) => {
    service = await start('services/standalone/main.ts', {
      args: ['--data', dataDir, '--port', '0', '--no-tour'],
      env: { LEASE_TTL_MS: '1000', ...env },
      readyAt: /^Data: /m,
    });
  };
  const admin = async (line: string): Promise<Readonly<Record<string, unknown>>> => {
    const args = [...line.split(' '), '--data', dataDir, '--json'];
    const { code, output } = await run('services/admin/main.ts', { args });
    assert.equal(code, 0, output);
    return JSON.parse(output.split('\n').findLast((one) => /^[[{]/.test(one)) ?? '{}');
  };
  const becomes = (id: string, status: string) =>
    until(
      `the target is ${status}`,
      async () => {
        const { data } = await http.get(`/post-targets/${id}`);
        return data?.status === status ? data : null;
      },
      { ...sparing, withinMs: 60_000 },
    );

  t.after(() => folder.drop());

  t('what went out after the copy does not go out again without a word', async () => {
    assert.match(page, /^## On one machine$/m);
    await up({ PUBLISHING: 'hold' });
    const { secret } = await admin('key create --mode test');
    http = callerOf(() => printedUrl(service.output()), String(secret));
    const client = await until('the key works', async () => {
      const made = await http.post('/clients', { name: 'Northwind', type: 'brand' });
      return made.status === 200 ? made.data : null;
    });
    const invite = await http.post(`/clients/${client.id}/connect-invites`, { platforms: ['telegram'] });
    const body = new URLSearchParams({ platform: 'telegram', username: 'northwind', timezone: '' });
    await fetch(String(invite.data.url), { method: 'POST', body, redirect: 'manual' });
    const [account] = await until('it is connected', async () => {
      const { rows } = await http.get('/accounts');
      return rows.length === 1 ? rows : null;
    });
    const post = await http.post('/posts', {
      ...{ clientId: client.id, content: 'Lost', schedule: { type: 'now' } },
      targets: { mode: 'selection', accountIds: [account?.id] },
    });
    const [{ id = '' } = {}] = post.data.targets as readonly { readonly id: string }[];
    await becomes(id, 'pending');

    await service.stop();
    const asOf = new Date().toISOString();
    execFileSync('cp', ['-a', dataDir, copy]);
    await up();
    await becomes(id, 'published');
    await service.kill();
    // The machine is lost, and the copy takes its place.
    rmSync(dataDir, { recursive: true });
    renameSync(copy, dataDir);

    assert.equal((await admin(`restored --store-as-of ${asOf}`)).recorded, 'under way');
    await up();
    await becomes(id, 'outcome_unknown');
    await admin('publishing resume');
    await admin(`target settle ${id} failed`);
    await becomes(id, 'failed');
    assert.equal((await http.post(`/post-targets/${id}/retry`)).status, 200);
    await becomes(id, 'published');
  });
});
