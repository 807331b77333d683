# Makes stats.json, the values that the tests of src/compare/stats.rs are held against:
#   Rscript tests/oracles/stats.R > tests/oracles/stats.json
# Base R alone (made with R 4.2).

set.seed(20260814)
number <- function(x) sprintf("%.17g", x)
ints <- function(x) paste0("[", paste(x, collapse = ","), "]")
rows <- function(m) paste0("[", paste(apply(m, 1, ints), collapse = ","), "]")
list_of <- function(items) paste0("[\n    ", paste(items, collapse = ",\n    "), "\n  ]")

# Columns of a stratum: passes before, samples before, passes now, samples now.
mantel <- function(s) {
  tables <- array(0, c(2, 2, nrow(s)))
  for (i in seq_len(nrow(s))) tables[, , i] <- matrix(c(s[i, 3], s[i, 1], s[i, 4] - s[i, 3], s[i, 2] - s[i, 1]), 2)
  mantelhaen.test(tables, exact = TRUE)$p.value
}
strata <- function(k, most, p_before, p_now) {
  n1 <- sample(seq_len(most), k, TRUE); n2 <- sample(seq_len(most), k, TRUE)
  cbind(rbinom(k, n1, p_before), n1, rbinom(k, n2, p_now), n2)
}
stratified <- list()
for (k in c(2, 3, 5, 10, 40, 120)) for (most in c(1, 3, 10)) for (fall in c(0, 0.1, 0.4)) {
  p <- runif(k, 0.2, 0.95)
  s <- strata(k, most, p, pmax(p - fall, 0))
  total <- s[, 1] + s[, 3]
  # R refuses a stratum, and a test, in which nothing can vary.
  if (all(total == 0 | total == s[, 2] + s[, 4])) next
  stratified[[length(stratified) + 1]] <- sprintf('{"strata":%s,"p":%s}', rows(s), number(mantel(s)))
}

mcnemar <- lapply(list(c(10, 6), c(0, 1), c(5, 5), c(12, 0), c(0, 9), c(7, 1), c(30, 12), c(400, 350)), function(x)
  sprintf('{"down":%d,"up":%d,"p":%s}', x[1], x[2], number(binom.test(x[1], sum(x))$p.value)))

# Columns of a group: hits, size.
tables <- list(
  rbind(c(5, 71), c(4, 41), c(1, 99)), rbind(c(3, 5), c(0, 9)), rbind(c(1, 3), c(1, 3), c(1, 3)),
  rbind(c(9, 10), c(2, 10), c(0, 4), c(3, 3)), rbind(c(8, 60), c(1, 60), c(0, 60), c(0, 60), c(2, 60)))
spread <- lapply(tables, function(m) sprintf('{"groups":%s,"p":%s}', rows(m),
  number(fisher.test(cbind(m[, 1], m[, 2] - m[, 1]), workspace = 2e7)$p.value)))

wilson <- lapply(list(c(0, 1), c(1, 1), c(190, 220), c(0, 30), c(17, 17), c(1, 3)), function(x) {
  i <- suppressWarnings(prop.test(x[1], x[2], correct = FALSE)$conf.int)
  sprintf('{"hits":%d,"of":%d,"low":%s,"high":%s}', x[1], x[2], number(i[1]), number(i[2]))
})

holm <- lapply(list(c(0.01, 0.04, 0.03, 0.005), c(0.5), c(0.9, 0.9, 0.2), c(0.02, 0.02, 0.02)), function(p)
  sprintf('{"p":[%s],"adjusted":[%s]}', paste(number(p), collapse = ","),
    paste(number(p.adjust(p, "holm")), collapse = ",")))

passes <- list()
for (n in c(1, 2, 5, 10, 200)) for (c in unique(c(0, 1, n %/% 2, n))) for (k in unique(c(1, 2, n %/% 2, n))) {
  if (k < 1 || k > n) next
  passes[[length(passes) + 1]] <- sprintf('{"hits":%d,"of":%d,"k":%d,"any":%s,"all":%s}', c, n, k,
    number(1 - choose(n - c, k) / choose(n, k)), number(choose(c, k) / choose(n, k)))
}

cat(sprintf('{\n  "stratified": %s,\n  "mcnemar": %s,\n  "spread": %s,\n  "wilson": %s,\n  "holm": %s,\n  "passes": %s\n}\n',
  list_of(stratified), list_of(mcnemar), list_of(spread), list_of(wilson), list_of(holm), list_of(passes)))
