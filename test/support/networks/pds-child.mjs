// The real server of Bluesky's protocol with a directory of identities, in a process of its own: its packages lie outside of this project.
// Usage: node pds-child.mjs <folder of its packages> <data folder> <port> <port of the directory>
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire, flushCompileCache } from 'node:module';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const [, , packages, data, port, plcPort] = process.argv;
const require = createRequire(path.join(packages, 'package.json'));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { PDS, envToCfg, envToSecrets, readEnv } = await load('@atproto/pds');
const { PlcServer, Database } = await load('@did-plc/server');

const plc = PlcServer.create({ db: Database.mock(), port: Number(plcPort) });
await plc.start();

Object.assign(process.env, {
  PDS_PORT: port,
  PDS_HOSTNAME: 'localhost',
  PDS_DEV_MODE: 'true',
  PDS_DATA_DIRECTORY: data,
  PDS_BLOBSTORE_DISK_LOCATION: path.join(data, 'blobs'),
  PDS_DID_PLC_URL: `http://localhost:${plcPort}`,
  PDS_ADMIN_PASSWORD: 'admin',
  PDS_JWT_SECRET: process.env.PDS_TEST_JWT_SECRET,
  PDS_SERVICE_HANDLE_DOMAINS: '.test',
  PDS_PLC_ROTATION_KEY_K256_PRIVATE_KEY_HEX: randomBytes(32).toString('hex'),
  PDS_INVITE_REQUIRED: 'false',
  PDS_DISABLE_SSRF_PROTECTION: 'true',
  PDS_BSKY_APP_VIEW_URL: 'http://127.0.0.1:9',
  PDS_BSKY_APP_VIEW_DID: 'did:web:app.invalid',
  PDS_MOD_SERVICE_URL: 'http://127.0.0.1:9',
  PDS_MOD_SERVICE_DID: 'did:web:mod.invalid',
  PDS_REPORT_SERVICE_URL: 'http://127.0.0.1:9',
  PDS_REPORT_SERVICE_DID: 'did:web:mod.invalid',
  PDS_RATE_LIMITS_ENABLED: process.env.PDS_TEST_LIMITS,
  LOG_ENABLED: 'false',
});
const env = readEnv();

// Documents of clients, which have no server of their own here: only the way to them is imitated.
const documents = new Map();
const publishing = createServer(async (request, answer) => {
  documents.set(request.url.slice(1), await text(request));
  answer.writeHead(204).end();
}).listen(0, '127.0.0.1');
await once(publishing, 'listening');
const { fetch } = globalThis;
globalThis.fetch = (input, init) => {
  const document = documents.get(input instanceof Request ? input.url : String(input));
  return document === undefined
    ? fetch(input, init)
    : Promise.resolve(new Response(document, { headers: { 'content-type': 'application/json' } }));
};

const pds = await PDS.create(envToCfg(env), envToSecrets(env));
// Nobody follows what happens on it: to look for that each second costs a run more than its start.
pds.ctx.sequencer.pollDb = async () => undefined;
await pds.start();
// A test kills it, and a third of its start is compiling.
flushCompileCache();
process.send?.({
  service: `http://localhost:${port}`,
  directory: `http://127.0.0.1:${plcPort}`,
  documents: `http://127.0.0.1:${publishing.address().port}`,
});
process.on('disconnect', () => process.exit(0));
