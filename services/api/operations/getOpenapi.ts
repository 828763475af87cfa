import { ContractDocument } from '#schemas/http/common.ts';
import { served } from '../contract/served.ts';
import { operation } from '../operation.ts';

export const getOpenapi = operation({
  id: 'getOpenapi',
  method: 'GET',
  path: '/openapi.json',
  tag: 'contract',
  summary: 'Get this contract',
  description: 'OpenAPI 3.1: clients are generated from it.',
  scope: null,
  idempotent: 'none',
  cost: 1,
  answer: ContractDocument,
  raw: true,
  codes: [],
  example: { data: { openapi: '3.1.0' } },
  handle: ({ deps }) => served('openapi.json', { servers: [{ url: deps.baseUrl() }] }),
});
