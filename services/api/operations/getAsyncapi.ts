import { ContractDocument } from '#schemas/http/common.ts';
import { served } from '../contract/served.ts';
import { operation } from '../operation.ts';

export const getAsyncapi = operation({
  id: 'getAsyncapi',
  method: 'GET',
  path: '/asyncapi.json',
  tag: 'contract',
  summary: 'Get the contract of the events',
  description: 'AsyncAPI 3.0: every event that webhook endpoints receive, with the headers of its delivery.',
  scope: null,
  idempotent: 'none',
  cost: 1,
  answer: ContractDocument,
  raw: true,
  codes: [],
  example: { data: { asyncapi: '3.0.0' } },
  handle: () => served('asyncapi.json', {}),
});
