/**
 * Holds every answer that an api in this process gives against the contract, whoever asked for it and how: a browser, a
 * raw socket, a helper.
 */
import { Readable } from 'node:stream';
import type { Context, Middleware } from 'koa';
import { contractFaults } from './contract.ts';

export interface ContractAudit {
  readonly middleware: Middleware;
  /** @throws where an answer differed from the contract. */
  readonly assertClean: () => void;
}

const parsed = (body: unknown, type: string): unknown =>
  typeof body === 'string' && /[/+]json$/.test(type) ? JSON.parse(body) : body;

const headersOf = (ctx: Context): Record<string, string> =>
  Object.fromEntries(Object.entries(ctx.response.headers).map(([name, value]) => [name.toLowerCase(), String(value)]));

export const contractAudit = (): ContractAudit => {
  const faults = new Set<string>();
  return {
    middleware: async (ctx, next) => {
      await next();
      const { method, path, status } = ctx;
      if (!path.startsWith('/v1/') || method === 'HEAD' || method === 'OPTIONS') return;
      // Written while it is sent: the client that asked checks it.
      if (ctx.body instanceof Readable) return;
      const body = parsed(ctx.body, ctx.response.type);
      for (const fault of contractFaults({ method, path: path.slice(3), status, headers: headersOf(ctx), body })) {
        faults.add(fault);
      }
    },
    assertClean: () => {
      if (faults.size > 0) throw new Error(`answers that differ from the contract:\n${[...faults].join('\n')}`);
    },
  };
};
