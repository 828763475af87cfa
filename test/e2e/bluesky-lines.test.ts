/** Runs the operators' lines that connect a Bluesky account, against the real server. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { orMissing } from '#test/support/missing.ts';
import { sharedPds } from '#test/support/networks/pds.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import { printedUrl, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';

const page = readFileSync(path.resolve(import.meta.dirname, '../../infra/platforms/bluesky/OPERATORS.md'), 'utf8');
const lines = (/```sh bluesky\n([\s\S]*?)\n```/.exec(page)?.[1] ?? '').split('\n');

const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

suite('the operators’ page connects a Bluesky account', { timeoutMs: 120_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds } = opened;

  t('in five lines, and the network has the post', async () => {
    assert.equal(lines.length, 5);
    const ann = await pds.identity();
    const password = await pds.appPassword(ann);
    const { dataDir } = dataFolder();
    const service = await start('services/standalone/main.ts', {
      args: ['--data', dataDir, '--port', '0', '--no-tour'],
      env: {
        DATABASE_URL: (await preparedDatabase()).url,
        PRIVATE_TARGETS: [pds.service, pds.directory].map((url) => new URL(url).host).join(),
        ...{ BLUESKY_RESOLVER: pds.service, BLUESKY_DIRECTORY: pds.directory, BLUESKY_APP_VIEW: pds.service },
      },
      readyAt: /^Data: /m,
    });
    const base = printedUrl(service.output());
    const LIVE_KEY = /sk_live_\S+/.exec(service.output())?.[0] ?? '';
    const CLIENT = 'CLIENT';
    /** Runs a line as a shell has it after the lines before. */
    const bash = async (kept: string, line: string): Promise<string> => {
      const env = { PATH: `${path.dirname(process.execPath)}:${process.env.PATH}`, LIVE_KEY };
      const script = [lines[0]?.replace(/http:\S+\/v1/, base), kept, line].join('\n');
      return (await promisify(execFile)('bash', ['-ec', script], { env })).stdout.trim();
    };
    const id = await bash('', `${lines[1]}; echo $${CLIENT}`);
    assert.match(id, /^[0-9a-f-]{36}$/);
    const invite = await bash(`CLIENT=${id}`, lines[2] ?? '');
    assert.match(lines[3] ?? '', /^read -p 'Open it, give the handle and an app password/);
    const done = await fetch(new URL(new URL(invite).pathname, base), {
      method: 'POST',
      body: new URLSearchParams({ platform: 'bluesky', timezone: '', username: ann.handle, password }),
      redirect: 'manual',
    });
    assert.equal(done.status, 303, await done.text());
    // The account is in the read models a moment later; a post to a group without accounts is refused.
    const composed = await until(
      'the post',
      async () => {
        const body = JSON.parse(await bash(`CLIENT=${id}`, lines[4] ?? ''));
        return body.data?.status === undefined ? null : body;
      },
      sparing,
    );
    assert.ok(['scheduled', 'publishing', 'published'].includes(composed.data.status), JSON.stringify(composed));
    const params = { repo: ann.did, collection: 'app.bsky.feed.post' };
    const [post] = await until('the post on the network', async () => {
      const { records } = await pds.call('com.atproto.repo.listRecords', { params });
      return (records as unknown[]).length > 0 ? (records as { value: { text: string } }[]) : null;
    });
    assert.equal(post?.value.text, 'From Postline, for real ☕');
    await service.stop();
  });
});
