/**
 * What `make sdk` does for the TypeScript client, for each run of the tests: types of the contract, the tour under strict
 * compiler options, and the tour against a standalone service. The other languages need tools of their own.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { faultsOf } from '#contracts/sdk/checks.ts';
import { root } from '#contracts/sdk/client.ts';
import { receiver } from '#contracts/sdk/receiver.ts';
import { MissingTool, run } from '#contracts/sdk/shell.ts';
import { openapiFetch } from '#contracts/sdk/typescript.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import { type Process, printedUrl, start } from '#test/support/processes.ts';
import { afterFile, suite } from '#test/support/suite.ts';

const contract = path.join(root, 'contracts/openapi.json');
const cache = path.join(root, 'node_modules/.cache');
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(path.join(cache, 'sdk-test-'));
afterFile(() => rmSync(folder, { recursive: true, force: true }));
const client = path.join(folder, 'client');
const log = path.join(folder, 'log');

suite('the client of the contract', { timeoutMs: 240_000 }, (t) => {
  const data = dataFolder();
  let service: Process;
  let events: Awaited<ReturnType<typeof receiver>>;
  t.before(async () => {
    mkdirSync(client);
    events = await receiver();
    const db = await preparedDatabase();
    service = await start('services/standalone/main.ts', {
      args: ['--data', data.dataDir, '--port', '0', '--no-tour'],
      env: {
        DATABASE_URL: db.url,
        PRIVATE_TARGETS: events.host,
        RATE_LIMIT_PER_MINUTE: '6000',
        RATE_LIMIT_BURST: '1000',
      },
      readyAt: /^Serving/m,
    });
  });
  t.after(async () => {
    events.close();
    await service.stop();
  });

  t('is whole, compiles under strict options, and passes the tour', async () => {
    const made = await openapiFetch.make({ contract, folder: client, tools: folder, log, step: () => undefined });
    assert.deepEqual(faultsOf(contract, made), []);
    assert.ok(made.operations.length > 50 && made.types.length > 300, 'the types were not read');
    const output = service.output();
    const env = {
      POSTLINE_URL: printedUrl(output),
      POSTLINE_KEY: /sk_test_\S+/.exec(output)?.[0] ?? '',
      POSTLINE_RECEIVER: `http://${events.host}/events`,
      POSTLINE_PHOTO: path.join(root, 'test/fixtures/coffee.jpg'),
    };
    const { program, args, cwd } = made.tour ?? assert.fail('there is no tour');
    const said = await run(program, args, { cwd, log, env });
    assert.ok(said.split('\n').filter((line) => line.startsWith('ok')).length >= 20, said);
  });

  t('a call that the contract does not have does not compile', async () => {
    const wrong = `
import createClient from 'openapi-fetch';
import type { paths } from 'postline';
const postline = createClient<paths>({});
await postline.POST('/clients', {
  params: { header: { 'Idempotency-Key': 'a' } },
  body: { name: 'Acme', kind: 'brand' },
});
`;
    writeFileSync(path.join(client, 'tour.ts'), wrong);
    const tsc = path.join(root, 'node_modules/typescript/bin/tsc');
    await assert.rejects(
      run(process.execPath, [tsc, '-p', '.'], { cwd: client, log }),
      /'type' is missing|'kind' does not exist/,
    );
  });

  t('a contract with a nameless schema, or without an operation, is refused', () => {
    const made = { types: ['Body15'], operations: [], warnings: ['skipped'], tour: null };
    const faults = faultsOf(contract, made).join('\n');
    for (const fault of [/Body15 has an invented name/, /createPost is missing/, /warned: skipped/, /schema Post is/]) {
      assert.match(faults, fault);
    }
  });
});

suite('other people’s programs', (t) => {
  t('one that takes too long is ended with everything that it began', async () => {
    const began = performance.now();
    const slow = run('sh', ['-c', 'sleep 30 & wait'], { cwd: folder, log, within: 300 });
    await assert.rejects(slow, /sh took longer than 0\.3 s/);
    // The output ends when the last program that holds it has ended.
    assert.ok(performance.now() - began < 10_000);
  });

  t('one that cannot reach its registry is a tool that is missing; one that fails otherwise has failed', async () => {
    const ending = (text: string, fetches: boolean) =>
      run('sh', ['-c', 'echo "$SAID" >&2; exit 1'], { cwd: folder, log, env: { SAID: text }, fetches });
    const saidWithoutNetwork = [
      'ERROR: HTTPConnectionPool: Max retries exceeded with url: /simple/attrs/ (Caused by NewConnectionError)',
      '[ERROR] Could not transfer artifact org.openapitools:openapi-generator-cli:jar:7.25.0: Unknown host',
      'go: gopkg.in/validator.v2@v2.0.1: Get "https://go.example/": dial tcp: lookup go.example: no such host',
      'error NU1301: Unable to load the service index for source https://packages.example/index.json.',
    ];
    for (const text of saidWithoutNetwork) {
      await assert.rejects(ending(text, true), (error) => error instanceof MissingTool, text);
      await assert.rejects(ending(text, false), (error) => !(error instanceof MissingTool), text);
    }
    const wrong = 'ERROR: No matching distribution found for attrs==0.0.0';
    await assert.rejects(
      ending(wrong, true),
      (error) => !(error instanceof MissingTool) && /No matching/.test(String(error)),
    );
    const late = run('sleep', ['30'], { cwd: folder, log, within: 100, fetches: true });
    await assert.rejects(late, (error) => error instanceof MissingTool);
  });
});
