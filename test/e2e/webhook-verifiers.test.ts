/** Runs the verifiers in the guide to webhooks against requests of our sender. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { deliveryHeaders, signingKey } from '#runtime/identity/webhook-signature.ts';
import { onlyCodeOf } from '#test/support/guides.ts';
import { suite } from '#test/support/suite.ts';

/** The function of each receiver in the guide that verifies, with the imports that it needs. */
const forms = {
  ts: { verifier: /^const isGenuine = [\s\S]*?^};\n/m, imports: /^import \{[^}]*\} from 'node:crypto';\n/m },
  python: { verifier: /^def is_genuine\([\s\S]*?(?=\n\n)/m, imports: /^import .*\n/m },
} as const;
type Language = keyof typeof forms;

const partOf = (language: Language, part: 'verifier' | 'imports'): string => {
  const [code] = forms[language][part].exec(onlyCodeOf('webhooks', language)) ?? [];
  assert.ok(code !== undefined, `the guide has no ${part} in ${language}`);
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

/** The receiver has one secret, which is another one in each case here. */
const harness: Readonly<Record<Language, string>> = {
  ts: `
import { readFileSync } from 'node:fs';
let secret = '';
const judge = (one) => {
  secret = one.secret;
  return isGenuine(one.headers, Buffer.from(one.body, 'base64'));
};
console.log(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map(judge)));
`,
  python: `

import sys
verdicts = []
for one in json.load(sys.stdin):
    SECRET = one["secret"]
    verdicts.append(is_genuine(one["headers"], base64.b64decode(one["body"])))
print(json.dumps(verdicts))
`,
};

suite('the guide’s code for receivers', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'postline-verifiers-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));

  const judged = (language: Language, command: string, file: string): readonly boolean[] => {
    const code = path.join(folder, file);
    const program = `${partOf(language, 'imports')}\n${partOf(language, 'verifier')}${harness[language]}`;
    writeFileSync(code, language === 'ts' ? stripTypeScriptTypes(program) : program);
    const { status, stdout, stderr } = spawnSync(command, [code], { input: JSON.stringify(all), encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    return JSON.parse(stdout);
  };
  const all = cases();
  const expected = all.map(({ name, genuine }) => [name, genuine]);
  const named = (verdicts: readonly boolean[]) => all.map(({ name }, at) => [name, verdicts[at]]);

  t('the code for Node accepts signed requests and no others', () => {
    assert.deepEqual(named(judged('ts', process.execPath, 'verify.mjs')), expected);
  });

  const python = spawnSync('python3', ['--version']).status === 0;
  if (!python) t.skip('the code for Python accepts signed requests and no others', 'there is no python3 here');
  else {
    t('the code for Python accepts signed requests and no others', () => {
      assert.deepEqual(named(judged('python', 'python3', 'verify.py')), expected);
    });
  }

  t('both have at most ten lines', () => {
    for (const language of ['ts', 'python'] as const)
      assert.ok(partOf(language, 'verifier').trim().split('\n').length <= 10, language);
  });
});
