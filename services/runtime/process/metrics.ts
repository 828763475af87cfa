import { createRequire } from 'node:module';
import type * as prom from 'prom-client';
import { within } from '#contracts/base/pause.ts';

/**
 * The modules of prom-client that we use. Its index also loads a client of Pushgateway, that one `http`, and that one
 * Node's whole `fetch`: 7 MB in every thread of standalone, of which only the api's serves HTTP.
 */
const require = createRequire(import.meta.url);

export const Registry: typeof prom.Registry = require('prom-client/lib/registry');
export type Registry = prom.Registry;
export const AggregatorRegistry: typeof prom.AggregatorRegistry = require('prom-client/lib/cluster');
export const collectDefaultMetrics: typeof prom.collectDefaultMetrics = require('prom-client/lib/defaultMetrics');

export const Counter: typeof prom.Counter = require('prom-client/lib/counter');
export type Counter = prom.Counter;
export const Gauge: typeof prom.Gauge = require('prom-client/lib/gauge');
export type Gauge = prom.Gauge;
export const Histogram: typeof prom.Histogram = require('prom-client/lib/histogram');
export type Histogram = prom.Histogram;

/**
 * Milliseconds that a scrape waits for one query: standalone counts a thread as silent after 3 s, Prometheus gives up
 * after 10.
 */
const answerMs = 2_000;

/**
 * Runs a query of gauges at each scrape; null where it fails or does not answer in time, so that a silent database
 * hides no other figure. A query that still runs is not started again.
 *
 * Gauges that show several figures of one answer each collect by themselves: a registry collects all gauges at once, so
 * a gauge that another one's `collect` sets shows the figure of the previous scrape.
 */
export const scraped = <T>(query: () => Promise<T>): (() => Promise<T | null>) => {
  let running: Promise<T | null> | null = null;
  return () => {
    running ??= query()
      .catch(() => null)
      .finally(() => {
        running = null;
      });
    return within<T | null>(answerMs, running, () => null);
  };
};
