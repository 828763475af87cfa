import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { glob, readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { scopesOf } from '#domain/roles.ts';
import { scopes } from '#schemas/apikey.ts';
import { roles } from '#schemas/common.ts';
import { issuesOf } from '#schemas/validator.ts';
import { errors, isErrorCode } from '#services/api/call/errors.ts';
import { codesOf } from '#services/api/contract/codes.ts';
import { contractFiles, contractsFolder, exportedOperations, tableFile, tableOf } from '#services/api/emit.ts';
import { operations } from '#services/api/operations.ts';
import { errorPages } from '#services/api/reference.ts';
import { scopesForRole } from '#services/console/words.ts';
import { suite } from '#test/support/suite.ts';

const root = new URL('../../../', import.meta.url);

interface Documented {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, unknown>>;
  readonly security: readonly unknown[];
  readonly 'x-required-scope'?: string;
}

const document = JSON.parse(contractFiles(operations)['openapi.json'] ?? '') as {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Documented>>>>;
};
const documented = Object.values(document.paths).flatMap((item) => Object.values(item));

/** Members of bodies that are filled where they are absent. */
const filled = [
  ...['defaultPostMode', 'timezone', 'approvalRequired', 'rules', 'brandVoice'].flatMap((name) => [
    `createClient.${name}`,
    `updateClient.${name}`,
  ]),
  ...[
    'createConnectInvite.expiresInHours',
    'createPost.saveDraft',
    'previewPost.saveDraft',
    'bulkCreatePosts.posts.saveDraft',
  ],
  ...['content', 'mediaIds', 'variants', 'variants.overrides', 'scheduleMode', 'timezone', 'aiDisclosure'].flatMap(
    (name) => [`bulkCreatePosts.posts.${name}`, `createPost.${name}`, `previewPost.${name}`, `updatePost.${name}`],
  ),
  ...['requestApproval', 'thread.segments.content', 'thread.segments.mediaIds'].flatMap((name) => [
    `bulkCreatePosts.posts.${name}`,
    `createPost.${name}`,
    `previewPost.${name}`,
    `updatePost.${name}`,
  ]),
  ...['coverFrameMs', 'coverMediaId', 'mediaAltTexts', 'thread'].map((name) => `revisePost.${name}`),
  ...['thread.segments.content', 'thread.segments.mediaIds', 'variants.overrides'].map((name) => `revisePost.${name}`),
  ...['color', 'startsOn', 'endsOn', 'description'].map((name) => `updateCampaign.${name}`),
  ...['registerWebhook.description', 'updateWebhook.clientIds', 'updateWebhook.description', 'testWebhook.eventType'],
  ...['setPostRecycle.enabled', 'createSimulation.recycling.enabled'],
];

const filledIn = (schema: unknown, name: string): readonly string[] => {
  if (typeof schema !== 'object' || schema === null) return [];
  if (Array.isArray(schema)) return schema.flatMap((one) => filledIn(one, name));
  return Object.entries(schema).flatMap(([key, value]) => {
    if (key === 'default') return [name];
    if (key !== 'properties') return filledIn(value, name);
    return Object.entries(value).flatMap(([member, one]) => filledIn(one, `${name}.${member}`));
  });
};

const lint = async (files: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }> => {
  const cli = fileURLToPath(new URL('../../../node_modules/.bin/redocly', import.meta.url));
  const child = spawn(process.execPath, [cli, 'lint', ...files, '--extends', 'recommended'], {
    cwd: fileURLToPath(contractsFolder),
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' },
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    output += String(chunk);
  });
  const code = await new Promise<number | null>((done) => child.once('close', done));
  return { code, output };
};

suite('contracts', (t) => {
  t('the committed files match the table (make contracts)', async () => {
    for (const [name, text] of Object.entries(contractFiles(operations))) {
      assert.equal(await readFile(new URL(name, contractsFolder), 'utf8'), text, `${name} has drifted: make contracts`);
    }
  });

  t('the committed table is made from the exported operations (make contracts)', async () => {
    const text = tableOf(await exportedOperations());
    assert.equal(await readFile(tableFile, 'utf8'), text, 'operations.ts has drifted: make contracts');
  });

  t('each exported operation is named like its id, and the table and the contract have every one', async () => {
    const folder = new URL('../../../services/api/', import.meta.url);
    const files = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.ts'));
    const texts = await Promise.all(files.map((name) => readFile(new URL(name, folder), 'utf8')));
    const made = texts.flatMap((text) => [...text.matchAll(/\boperation\(\{\s*id: '(\w+)'/g)].map(([, id]) => id));
    const exported = texts.flatMap((text) =>
      [...text.matchAll(/^export const (\w+) = operation\(/gm)].map(([, name]) => name),
    );
    const table = operations.map(({ id }) => id).sort();
    assert.deepEqual(made.sort(), table);
    assert.deepEqual(exported.sort(), table);
    assert.deepEqual(documented.map(({ operationId }) => operationId).sort(), table);
  });

  t('no new body member has a default, because fingerprints of earlier calls would change', () => {
    const found = new Set(operations.flatMap(({ id, body }) => filledIn(body, id)));
    assert.deepEqual([...found].sort(), [...filled].sort());
  });

  t('a linter finds no fault in them, and has no warning', async () => {
    const { code, output } = await lint(Object.keys(contractFiles(operations)));
    assert.equal(code, 0, output);
    assert.ok(!/warnings?\b/i.test(output), output);
  });

  t('every operation declares what every operation may answer, and its scope', () => {
    assert.equal(document.openapi.slice(0, 3), '3.1');
    assert.equal(document.info.version, '1.0.0');
    for (const one of documented) {
      for (const status of ['200', '400', '401', '403', '404', '422', '429']) {
        assert.ok(one.responses[status] !== undefined, `${one.operationId} does not declare ${status}`);
      }
      const { scope } = operations.find(({ id }) => id === one.operationId) ?? {};
      assert.equal(one['x-required-scope'], scope ?? undefined);
      assert.equal(one.security.length, scope === null ? 0 : 1);
      if (scope !== null) assert.ok(scopes.includes(scope ?? 'agency.read'));
    }
  });

  t('a new key is offered every scope that the role carries, and each opens an operation', () => {
    const used = new Set(operations.flatMap(({ scope }) => scope ?? []));
    assert.deepEqual(
      scopes.filter((scope) => !used.has(scope)),
      [],
    );
    const { components } = document as unknown as {
      readonly components: { readonly schemas: Readonly<Record<string, { readonly 'x-extensible-enum'?: unknown }>> };
    };
    assert.deepEqual(components.schemas.ScopeInput?.['x-extensible-enum'], scopes);
    for (const role of roles) {
      const shown = scopesForRole(role).map(({ name }) => name);
      assert.deepEqual(shown, scopesOf(role));
    }
  });

  t('examples fit their schemas', () => {
    for (const { id, body, answer, example } of operations) {
      assert.deepEqual(issuesOf(answer, example.data), [], `${id} data`);
      if (body !== undefined && example.body !== undefined)
        assert.deepEqual(issuesOf(body, example.body), [], `${id} body`);
    }
  });

  t('every code named is in the catalogue, once', () => {
    for (const operation of operations) {
      for (const code of codesOf(operation)) assert.ok(isErrorCode(code), `${operation.id}: ${code}`);
    }
    const codes = errorPages.map(({ code }) => code);
    assert.equal(new Set(codes).size, codes.length);
    for (const { title, about } of Object.values(errors)) assert.ok(title !== '' && about !== '');
  });

  t('every code of the catalogue is thrown somewhere', async () => {
    const throws = /(?:new (?:Rejection|Refusal)\(\s*|\brefuse\((?:\w+, )?|(?:[?:]|\w =) )'([a-z_]+)'/g;
    const catalogue = ['services/api/call/errors.ts', 'services/domain/codes.ts'];
    const thrown = new Set<string>();
    for await (const file of glob('services/**/*.ts', { cwd: fileURLToPath(root) })) {
      if (catalogue.includes(file)) continue;
      const text = await readFile(new URL(file, root), 'utf8');
      for (const [, code = ''] of text.matchAll(throws)) thrown.add(code);
    }
    assert.deepEqual(
      Object.keys(errors).filter((code) => !thrown.has(code)),
      [],
    );
  });
});
