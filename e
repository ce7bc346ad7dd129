kanlog: t_b9bf066e: run 2: n
kanlog: t_b9bf066e: run 2 ended as completed
