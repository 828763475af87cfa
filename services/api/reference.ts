import { ContractDocument } from '#schemas/http/common.ts';
import { ErrorDoc, ErrorParams } from '#schemas/http/error.ts';
import { wholeList } from './call/cursor.ts';
import { operation } from './call/operation.ts';
import { notFound } from './call/refusal.ts';
import { served } from './contract/served.ts';
import { errorHtml, errorPages, exampleError, showError } from './http/html.ts';

export const getError = operation({
  id: 'getError',
  method: 'GET',
  path: '/errors/{code}',
  tag: 'contract',
  summary: 'What an error code means',
  description: 'The `type` of every problem leads here. A browser gets a page.',
  scope: null,
  idempotent: 'none',
  cost: 1,
  params: ErrorParams,
  answer: ErrorDoc,
  alsoAs: ['text/html'],
  codes: [],
  example: { data: exampleError },
  handle: async ({ deps, params, accepts }) => {
    const page = errorPages.find(({ code }) => code === params.code);
    if (page === undefined) throw notFound('error code');
    if (accepts('application/json', 'text/html') === 'text/html') {
      return { raw: { type: 'text/html', body: errorHtml(page) } };
    }
    return { data: showError(page, deps.baseUrl()) };
  },
});

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

export const listErrors = operation({
  id: 'listErrors',
  method: 'GET',
  path: '/errors',
  tag: 'contract',
  summary: 'List every error code and what it means',
  description: 'Codes of refused calls, with their status, and codes of failed targets, assets and report runs.',
  scope: null,
  idempotent: 'none',
  cost: 1,
  answer: ErrorDoc,
  list: true,
  codes: [],
  example: { data: exampleError },
  handle: async ({ deps }) => wholeList(errorPages.map((page) => showError(page, deps.baseUrl()))),
});
