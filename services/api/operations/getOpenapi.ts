import { readFile } from 'node:fs/promises';
import { FreeForm } from '#schemas/http/common.ts';
import { operation } from '../operation.ts';

const emitted = new URL('../../../contracts/openapi.json', import.meta.url);

export const getOpenapi = operation({
  id: 'getOpenapi',
  method: 'GET',
  path: '/openapi.json',
  tag: 'contract',
  summary: 'Get this contract',
  scope: null,
  idempotent: 'none',
  cost: 1,
  answer: FreeForm,
  raw: true,
  codes: [],
  example: { data: { openapi: '3.1.0' } },
  handle: async ({ deps }) => {
    const contract = JSON.parse(await readFile(emitted, 'utf8')) as Record<string, unknown>;
    const body = JSON.stringify({ ...contract, servers: [{ url: deps.baseUrl() }] });
    return { raw: { type: 'application/json', body } };
  },
});
