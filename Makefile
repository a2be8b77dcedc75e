# The order of the work. `make` alone prints what there is to make.
#
# Content decides, not the clock: every source has a checksum below .make/, rewritten only when
# its bytes change, and targets depend on the checksum. A stage's target is its executed notebook.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
PY     := .venv/bin/python
STAGE  := $(PY) -m esfp.run
sums    = $(patsubst %,.make/%.sum,$(wildcard $(1)))
code    = $(call sums,$(patsubst %,esfp/%.py,$(1)))

# ---- what to build ---------------------------------------------------------------------------

PARAMS ?=
ifneq ($(PARAMS),)
# as a path from here, however it was given
params_file := $(patsubst $(CURDIR)/%,%,$(realpath $(dir $(PARAMS)))/$(notdir $(PARAMS)))
ifeq ($(filter params/%.yaml,$(params_file)),)
$(error PARAMS=$(PARAMS): expected a .yaml file below params/, for example PARAMS=params/mine.yaml)
endif
ifeq ($(wildcard $(params_file)),)
$(error PARAMS=$(PARAMS): no such file; copy one of $(wildcard params/*.yaml) to begin with)
endif
ifneq ($(filter smoke mine,$(MAKECMDGOALS)),)
$(error make $(filter smoke mine,$(MAKECMDGOALS)) has a params file of its own; make all PARAMS=$(params_file) runs that one)
endif
run := $(patsubst params/%.yaml,%,$(params_file))
endif

ifneq ($(filter plan fewshot resolve,$(MAKECMDGOALS)),)
ifeq ($(PARAMS),)
$(error make $(filter plan fewshot resolve,$(MAKECMDGOALS)) needs a params file: PARAMS=params/mine.yaml)
endif
endif

# make mine MODEL=name BASE_URL=… [KEY_ENV=variable] [COMPARE=run]
COMPARE ?= published
ifneq ($(filter mine,$(MAKECMDGOALS)),)
ifeq ($(and $(MODEL),$(BASE_URL)),)
$(error make mine needs a model and an endpoint: MODEL=name BASE_URL=http://localhost:8000/v1)
endif
ifeq ($(wildcard params/$(COMPARE).yaml),)
$(error COMPARE=$(COMPARE): no such run; params/$(COMPARE).yaml is not there)
endif
endif

# make ablations [BASE=run]; make sweep PARAM=score.weights.scd VALUES=0.3,0.4,0.5 [BASE=run]
BASE ?= local
ifneq ($(filter ablations sweep,$(MAKECMDGOALS)),)
ifeq ($(wildcard params/$(BASE).yaml),)
$(error BASE=$(BASE): no such run; params/$(BASE).yaml is not there)
endif
endif
ifneq ($(filter sweep,$(MAKECMDGOALS)),)
ifeq ($(and $(PARAM),$(VALUES)),)
$(error make sweep needs a parameter and its values: PARAM=score.weights.scd VALUES=0.3,0.4,0.5)
endif
endif

ifneq ($(filter verify,$(MAKECMDGOALS)),)
ifeq ($(RUN),)
$(error make verify needs a run: RUN=local)
endif
endif

# make compare RUNS="a b c"
ifneq ($(filter compare,$(MAKECMDGOALS)),)
ifeq ($(RUNS),)
$(error make compare needs runs in the order of time: RUNS="a b c")
endif
endif

# make diff RUN_A=published RUN_B=mine
ifneq ($(filter diff,$(MAKECMDGOALS)),)
ifeq ($(and $(RUN_A),$(RUN_B)),)
$(error make diff needs two runs: RUN_A=published RUN_B=mine)
endif
endif

# the runs that the goals ask for
runs := $(if $(filter all,$(MAKECMDGOALS)),$(if $(PARAMS),$(run),published local)) \
    $(filter smoke,$(MAKECMDGOALS)) $(if $(filter ablations sweep,$(MAKECMDGOALS)),$(BASE)) \
    $(patsubst outputs/%/report.pdf,%,$(filter outputs/%/report.pdf,$(MAKECMDGOALS))) \
    $(patsubst outputs/%/notebooks/5_bootstrap.ipynb,%,$(filter outputs/%/notebooks/5_bootstrap.ipynb,$(MAKECMDGOALS)))

# tables that somebody deleted are made again: their stage counts as not done
gone = $(if $(wildcard outputs/$(1)/$(3)),,$(shell rm -f outputs/$(1)/notebooks/$(2).ipynb))
$(foreach each,$(runs),$(call gone,$(each),4_score,scores.csv)$(call gone,$(each),6_figures,results.json))

.PHONY: help all mine plan diff resolve ablations sweep verify compare annotate fewshot smoke browser \
    test bench lint clean distclean

help:  ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo 'make all PARAMS=params/mine.yaml makes the run that file describes, and its report.'

ifeq ($(PARAMS),)
all: outputs/published/manifest.json outputs/local/manifest.json
all: paper/paper.pdf outputs/published/report.pdf outputs/local/report.pdf  ## the paper, from the runs published and local
else
all: outputs/$(run)/report.pdf outputs/$(run)/manifest.json
endif

mine: .venv/installed  ## the score of one model of yours: MODEL=name BASE_URL=… [KEY_ENV=…]
	@run=$$($(PY) -m esfp.mine params --model "$$MODEL" --base-url "$$BASE_URL" \
	    --key-env "$$KEY_ENV") \
	  && $(MAKE) --no-print-directory "outputs/$$run/report.pdf" \
	    'outputs/$(COMPARE)/notebooks/5_bootstrap.ipynb' \
	  && echo && $(PY) -m esfp.mine table "$$run" '$(COMPARE)'

plan: .venv/installed  ## calls, tokens, cost and time of a run, no call made: PARAMS=params/mine.yaml
	@$(PY) -m esfp.plan --params $(params_file)

resolve: .venv/installed  ## a params file as a run sees it, and where each value comes from: PARAMS=params/mine.yaml
	@$(PY) -m esfp.resolve --params $(params_file)

# what they start from: answers, labels and vectors of the base
labelled := outputs/$(BASE)/notebooks/2_judge.ipynb outputs/$(BASE)/notebooks/3_embed.ipynb
ablations: $(labelled)  ## what changes under each file of params/ablations, no call made: [BASE=run]
	@$(PY) -m esfp.ablate --base params/$(BASE).yaml

sweep: $(labelled)  ## the same for one parameter: PARAM=score.weights.scd VALUES=0.3,0.4,0.5 [BASE=run]
	@$(PY) -m esfp.ablate --base params/$(BASE).yaml --param '$(PARAM)' --values '$(VALUES)'

verify: .venv/installed  ## whether a run's outputs belong to its inputs, and come out the same again: RUN=local
	@$(PY) -m esfp.verify --run '$(RUN)'

compare: .venv/installed  ## runs of one instrument on successive versions of a model: RUNS="a b c"
	@$(PY) -m esfp.compare --runs '$(RUNS)'

diff: .venv/installed  ## numbers and verdicts that differ between two runs: RUN_A=… RUN_B=…
	@$(PY) -m esfp.diff 'outputs/$(RUN_A)' 'outputs/$(RUN_B)'

# from the command line alone: some systems set a NAME or a PORT of their own
given = $(if $(filter command,$(origin $(1))),$(2) "$$$(1)")
annotate: .venv/installed  ## a page on which people label sentences: [NAME=ann] [PORT=8765]
	@$(PY) -m esfp.annotate $(call given,NAME,--name) $(call given,PORT,--port)

fewshot: .venv/installed  ## reference labels guessed by the models of PARAMS=params/mine.yaml [MODEL=name]
	@$(PY) -m esfp.few_shot --params $(params_file) $(call given,MODEL,--model)

smoke: outputs/smoke/report.pdf  ## the whole pipeline live on the embedded model, 12 items, in minutes

browser:
	@sh tests/browser.sh

test: .venv/installed browser  ## every test
	$(PY) -m pytest --numprocesses auto --dist loadfile

bench: .venv/installed  ## speed, measured beside what one would write instead
	@$(PY) -m esfp.bench

lint: .venv/installed  ## style of code and notebooks
	$(PY) -m ruff check . && $(PY) -m ruff format --check .

clean:  ## remove what can be rebuilt; recorded answers, labels and journals stay
	rm -rf paper/paper.pdf paper/paper.html paper/paper.tex outputs/*/ablations outputs/*/sweeps outputs/compare
	find outputs -type f \( -path '*/notebooks/*' -o -path '*/params/*' -o -path '*/results/*' \
	  -o -path '*/tables/*' -o -path '*/figures/*' -o -path '*/embeddings/*' -o -path '*/resplit/*' -o -name 'report.*' \
	  -o -name 'results.json' -o -name 'manifest.json' -o -name 'measures.parquet' -o -name 'items.parquet' \
	  -o -name 'bootstrap.parquet' -o -name 'scores.csv' -o -name 'sensitivity.csv' \
	  -o -name 'judge_sensitivity.csv' -o -name 'correlations.csv' -o -name 'recomputed.csv' \
	  -o -name 'claims.html' -o -name 'psi.csv' -o -name 'judge_comparison.csv' \
	  -o -name 'stance_comparison.csv' \
	  -o -name 'differences.csv' -o -name 'ranks.csv' -o -name 'power.csv' -o -name 'mixed.csv' \
	  -o -name 'rigid.csv' -o -name 'types.csv' -o -name 'licensed.csv' -o -name 'typology.csv' \
	  -o -name 'bands.csv' -o -name 'compliance.csv' -o -name 'readings.csv' \
	  -o -name 'item_analysis.csv' -o -name 'shorter.csv' -o -name 'leaders.csv' \
	  -o -name 'multiverse.parquet' \) -delete

distclean: clean  ## also remove the environment
	rm -rf .venv .make outputs/.cache

# ---- the environment -------------------------------------------------------------------------

# nodeps.lock: packages whose declared needs are of no use here
.venv/installed: .make/requirements.lock.sum .make/nodeps.lock.sum
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps -r nodeps.lock
	touch $@

# ---- checksums -------------------------------------------------------------------------------

.PRECIOUS: .make/%.sum
.make/%.sum: %
	@mkdir -p $(@D)
	@if [ -e '$<' ]; then cksum < '$<'; else echo missing; fi > $@.$$PPID
	@$(renewed)

renewed = if cmp -s $@.$$PPID $@; then rm $@.$$PPID; else mv $@.$$PPID $@; fi

# ---- one rule a stage ------------------------------------------------------------------------

.PRECIOUS: outputs/%/params/stamp outputs/%/notebooks/1_generate.ipynb \
    outputs/%/notebooks/2_judge.ipynb outputs/%/notebooks/3_embed.ipynb \
    outputs/%/notebooks/4_score.ipynb outputs/%/notebooks/5_bootstrap.ipynb \
    outputs/%/notebooks/6_figures.ipynb

# Each stage's resolved parameters are rewritten only where they change.
outputs/%/params/stamp: params/%.yaml $(call sums,params/*.yaml params/*/*.yaml) \
    $(call code,params files keys layers lines providers schema) \
    $(call sums,corpus/gold/human_*.csv corpus/gold/llm_*.csv) .venv/installed
	@mkdir -p $(@D) && touch $@  # first, so that what is written next is newer
	@$(STAGE) resolve --params $<
outputs/%/params/generate.yaml outputs/%/params/judge.yaml outputs/%/params/embed.yaml \
outputs/%/params/score.yaml outputs/%/params/bootstrap.yaml outputs/%/params/figures.yaml \
outputs/%/params/prices_generate.yaml outputs/%/params/prices_judge.yaml: outputs/%/params/stamp ;

# The data files that a run reads (corpus, prompts, labels) are listed by its own params: make
# resolves these first, reads the list, and starts over with it.
outputs/%/params/inputs.d: outputs/%/params/stamp ;
lists := $(patsubst %,outputs/%/params/inputs.d,$(runs))
# an old and empty list where there is none: make would name the missing file beside every error
$(foreach list,$(lists),$(if $(wildcard $(list)),,$(shell mkdir -p $(dir $(list)) && \
    touch -t 200001010000 $(list))))
include $(lists)

# What a stage hands on has a checksum too: where it ran again and wrote the same, no other does.
.PRECIOUS: outputs/%/notebooks/1_generate.sum outputs/%/notebooks/2_judge.sum \
    outputs/%/notebooks/3_embed.sum
handed_on = cat $(addprefix outputs/$*/,$(1)) 2>/dev/null | cksum > $@.$$PPID; $(renewed)
outputs/%/notebooks/1_generate.sum: outputs/%/notebooks/1_generate.ipynb
	@$(call handed_on,params/generate.yaml results/generate.json responses/*.parquet)
outputs/%/notebooks/2_judge.sum: outputs/%/notebooks/2_judge.ipynb
	@$(call handed_on,params/judge.yaml results/judge.json judged/*.parquet resplit/*.parquet \
	    stances/*.parquet judge_comparison.csv stance_comparison.csv)
outputs/%/notebooks/3_embed.sum: outputs/%/notebooks/3_embed.ipynb
	@$(call handed_on,params/embed.yaml results/embed.json embeddings/*.parquet)

every := files keys layers lines params paper providers run schema
calling := answers asking calls failures journal local_models pace progress request text

modules_generate := $(every) $(calling) generate corpus drift llm_judges preflight questions replies \
    tally usage
outputs/%/notebooks/1_generate.ipynb: outputs/%/params/generate.yaml \
    outputs/%/params/prices_generate.yaml .make/notebooks/1_generate.ipynb.sum \
    $(call code,$(modules_generate))
	@$(STAGE) generate --params params/$*.yaml

modules_judge := $(every) $(calling) judge agreement agreement_figures coefficients comparison \
    corpus cues encoder gold human llm_judges offline powered preflight questions replies \
    self_preference stance style tally usage validation
outputs/%/notebooks/2_judge.ipynb: outputs/%/params/judge.yaml outputs/%/params/prices_judge.yaml \
    outputs/%/notebooks/1_generate.sum .make/notebooks/2_judge.ipynb.sum \
    $(call code,$(modules_judge))
	@$(STAGE) judge --params params/$*.yaml

modules_embed := $(every) embed encoder style
outputs/%/notebooks/3_embed.ipynb: outputs/%/params/embed.yaml \
    outputs/%/notebooks/1_generate.sum .make/notebooks/3_embed.ipynb.sum \
    $(call code,$(modules_embed))
	@$(STAGE) embed --params params/$*.yaml

modules_score := $(every) score attribution bootstrap by_type compliance corpus coverage equations \
    gold mixed multiverse powered psi published rankings replies rigid style text typology variance
outputs/%/notebooks/4_score.ipynb: outputs/%/params/score.yaml \
    outputs/%/notebooks/1_generate.sum outputs/%/notebooks/2_judge.sum \
    outputs/%/notebooks/3_embed.sum .make/notebooks/4_score.ipynb.sum $(call code,$(modules_score))
	@$(STAGE) score --params params/$*.yaml

modules_bootstrap := $(every) bootstrap bands by_type comparisons equations item_analysis power \
    simulation style typology
outputs/%/notebooks/5_bootstrap.ipynb: outputs/%/params/bootstrap.yaml \
    outputs/%/notebooks/4_score.ipynb .make/notebooks/5_bootstrap.ipynb.sum \
    $(call code,$(modules_bootstrap))
	@$(STAGE) bootstrap --params params/$*.yaml

modules_figures := $(every) figures attribution bootstrap by_type cells claims \
    claims_correlations claims_design claims_evidence claims_facts claims_formulas \
    claims_intervals claims_ledger claims_ranks claims_rules claims_tables corpus diagrams \
    equations findings item_analysis multiverse power profiles psi_figures published rankings \
    rigid robustness standings style tables typology
outputs/%/notebooks/6_figures.ipynb: outputs/%/params/figures.yaml \
    outputs/%/notebooks/5_bootstrap.ipynb .make/notebooks/6_figures.ipynb.sum \
    $(call code,$(modules_figures)) $(call sums,esfp/claims.html)
	@$(STAGE) figures --params params/$*.yaml

outputs/%/manifest.json: outputs/%/notebooks/6_figures.ipynb $(call code,manifest encoder params)
	@$(PY) -m esfp.manifest --params params/$*.yaml
	@touch $@

# ---- what people read ------------------------------------------------------------------------

typesetting := $(call sums,paper/filters/* paper/style/* paper/references.bib) $(call code,paper files)

outputs/%/report.pdf: outputs/%/notebooks/6_figures.ipynb .make/paper/report.md.sum $(typesetting)
	@$(PY) -m esfp.paper paper/report.md outputs/$*/report run=outputs/$*
	@touch $@

paper/paper.pdf: outputs/published/notebooks/6_figures.ipynb outputs/local/notebooks/6_figures.ipynb \
    .make/paper/paper.md.sum $(typesetting)
	@$(PY) -m esfp.paper paper/paper.md paper/paper published=outputs/published local=outputs/local
	@touch $@
