/**
 * The process of the embedded engine. Its parent hands it connections; it never outlives the parent, and the parent
 * survives its death.
 */
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Connections } from './connections.ts';
import { Engine } from './engine.ts';
import { type Credentials, front } from './front.ts';
import type { FromChild, ToChild } from './messages.ts';

const send = (message: FromChild): void => void process.send?.(message);

// SIGKILL: a running query would hold up an orderly end, and parts on the disk are whole.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);

/** For the child of a killed parent: it ends within this time and frees the folder. */
const folderMs = 10_000;

const open = async (dir: string, memoryBytes: number): Promise<Engine> => {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  for (const end = performance.now() + folderMs; ; ) {
    try {
      return await Engine.open({ dir, memoryBytes });
    } catch (error) {
      if (!/lock|another/i.test(String(error)) || performance.now() > end) throw error;
      await delay(50);
    }
  }
};

const serve = async (start: ToChild & Credentials): Promise<void> => {
  const { dir, memoryBytes, user, password, database, silentMs, idleMs } = start;
  const engine = await open(dir, memoryBytes);
  await engine.query({
    database: 'default',
    settings: new Map(),
    params: new Map(),
    format: 'TabSeparated',
    sql: `create database if not exists ${database}`,
    isWanted: () => true,
  });
  const connections = new Connections({ silentMs, idleMs, onIdle: (taken) => send({ type: 'idle', taken }) });
  const server = createServer(front(engine, { user, password }, (socket) => connections.allow(socket)));
  server.keepAliveTimeout = 10_000;
  process.on('message', (message: { type: string; number: number }, socket?: Socket) => {
    if (message.type === 'connection') {
      send({ type: 'took', number: message.number });
      connections.accept(socket);
      if (socket === undefined) return;
      server.emit('connection', socket);
      socket.resume();
    } else if (message.type === 'stop') {
      engine.close();
      process.exit();
    }
  });
  send({ type: 'ready' });
};

process.once('message', (start: ToChild & Credentials) => {
  serve(start).catch((error: unknown) => {
    send({ type: 'failed', reason: error instanceof Error ? error.message : String(error) });
    process.disconnect();
  });
});
