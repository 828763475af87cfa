/** Runs the README's code for receivers against requests of our sender. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { deliveryHeaders, signingKey } from '#runtime/identity/webhook-signature.ts';
import { suite } from '#test/support/suite.ts';

const readme = readFileSync(path.resolve(import.meta.dirname, '../../README.md'), 'utf8');
const snippet = (language: string): string => {
  const [, code] = new RegExp(`\`\`\`${language}\\n([^\`]*(?:\`(?!\`\`)[^\`]*)*)\`\`\``).exec(readme) ?? [];
  assert.ok(code !== undefined, `README has no ${language}`);
  return code;
};

interface Case {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
  /** base64 */
  readonly body: string;
  readonly secret: string;
  readonly genuine: boolean;
}

const secret = (): string => `whsec_${randomBytes(32).toString('base64')}`;

const cases = (): readonly Case[] => {
  const [newer, older] = [secret(), secret()];
  const body = Buffer.from(JSON.stringify({ id: randomUUID(), type: 'post.created', data: { excerpt: 'Größe ☕ é' } }));
  const delivery = {
    id: randomUUID(),
    body,
    attempt: 1,
    timestamp: Math.floor(Date.now() / 1_000),
    consistencyToken: 't',
  };
  const keys = [signingKey(newer), signingKey(older)];
  const headers = deliveryHeaders(keys, delivery);
  const late = deliveryHeaders(keys, { ...delivery, timestamp: delivery.timestamp - 301 });
  const sent = body.toString('base64');
  const altered = Buffer.concat([body, Buffer.from(' ')]).toString('base64');
  return [
    { name: 'the newer secret', headers, body: sent, secret: newer, genuine: true },
    { name: 'the older secret', headers, body: sent, secret: older, genuine: true },
    { name: 'another secret', headers, body: sent, secret: secret(), genuine: false },
    { name: 'another body', headers, body: altered, secret: newer, genuine: false },
    {
      name: 'another id',
      headers: { ...headers, 'webhook-id': randomUUID() },
      body: sent,
      secret: newer,
      genuine: false,
    },
    { name: 'too old', headers: late, body: sent, secret: newer, genuine: false },
  ];
};

const harness = {
  js: `
import { readFileSync } from 'node:fs';
const all = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(all.map((one) => isGenuine(one.headers, Buffer.from(one.body, 'base64'), one.secret))));
`,
  python: `
import json, sys
print(json.dumps([is_genuine(one["headers"], base64.b64decode(one["body"]), one["secret"]) for one in json.load(sys.stdin)]))
`,
} as const;

suite('the README’s code for receivers', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'postline-readme-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));

  const judged = (language: keyof typeof harness, command: string, file: string): readonly boolean[] => {
    const code = path.join(folder, file);
    writeFileSync(code, snippet(language) + harness[language]);
    const { status, stdout, stderr } = spawnSync(command, [code], { input: JSON.stringify(all), encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    return JSON.parse(stdout);
  };
  const all = cases();
  const expected = all.map(({ name, genuine }) => [name, genuine]);
  const named = (verdicts: readonly boolean[]) => all.map(({ name }, at) => [name, verdicts[at]]);

  t('the code for Node accepts signed requests and no others', () => {
    assert.deepEqual(named(judged('js', process.execPath, 'verify.mjs')), expected);
  });

  const python = spawnSync('python3', ['--version']).status === 0;
  if (!python) t.skip('the code for Python accepts signed requests and no others', 'there is no python3 here');
  else {
    t('the code for Python accepts signed requests and no others', () => {
      assert.deepEqual(named(judged('python', 'python3', 'verify.py')), expected);
    });
  }

  t('both have at most ten lines', () => {
    for (const language of ['js', 'python']) assert.ok(snippet(language).trim().split('\n').length <= 10, language);
  });
});
